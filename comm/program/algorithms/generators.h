// The generators behind the list in algorithms.h; each file says where its algorithm comes from.
// Each handles the operations that the list gives it, for any number of ranks, any root and any
// ranks_per_host.
#ifndef PLINTH_COMM_PROGRAM_ALGORITHMS_GENERATORS_H_
#define PLINTH_COMM_PROGRAM_ALGORITHMS_GENERATORS_H_

#include "plinth/comm/program/builder.h"

namespace plinth::comm {

void GenerateMesh(ProgramBuilder& builder);
void GenerateRing(ProgramBuilder& builder);
void GenerateChunkedRing(ProgramBuilder& builder);
void GenerateHalvingDoubling(ProgramBuilder& builder);
void GenerateBruck(ProgramBuilder& builder);
void GenerateBinomial(ProgramBuilder& builder);
void GenerateDoubleTree(ProgramBuilder& builder);
void GeneratePairwise(ProgramBuilder& builder);
void GenerateHierarchical(ProgramBuilder& builder);
void GenerateNhr(ProgramBuilder& builder);
void GenerateNb(ProgramBuilder& builder);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_ALGORITHMS_GENERATORS_H_
