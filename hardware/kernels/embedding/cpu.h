// Host variants of embedding.h, vectorised for the machine they run on.
#ifndef PLINTH_HARDWARE_KERNELS_EMBEDDING_CPU_H_
#define PLINTH_HARDWARE_KERNELS_EMBEDDING_CPU_H_

#include "plinth/hardware/kernels/embedding/embedding.h"

namespace plinth::cpu {

void Embedding(const EmbeddingArgs& args, Threads& threads);
void EmbeddingBackward(const EmbeddingBackwardArgs& args, Threads& threads);

}  // namespace plinth::cpu

#endif  // PLINTH_HARDWARE_KERNELS_EMBEDDING_CPU_H_
