// Row lookup in a table, f32; ids in [0, V) (CHECKed by host kernels).
//   y[t] = table[ids[t]]            backward: dtable[ids[t]] += dy[t], in the order of t
// Rows may be strided. Threads do not change results.
#ifndef PLINTH_HARDWARE_KERNELS_EMBEDDING_EMBEDDING_H_
#define PLINTH_HARDWARE_KERNELS_EMBEDDING_EMBEDDING_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

struct EmbeddingArgs {
  TensorView table_VD;
  TensorView ids_T;  // i32
  TensorView y_TD;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(table_VD);
    visit(ids_T);
    visit(y_TD);
  }
};

void Embedding(const EmbeddingArgs& args, KernelContext& ctx);

struct EmbeddingBackwardArgs {
  TensorView ids_T;  // i32
  TensorView dy_TD;
  TensorView dtable_VD;  // added to

  template <typename F>
  void ForEachView(F&& visit) {
    visit(ids_T);
    visit(dy_TD);
    visit(dtable_VD);
  }
};

void EmbeddingBackward(const EmbeddingBackwardArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_EMBEDDING_EMBEDDING_H_
