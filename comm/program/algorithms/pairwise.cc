// Pairwise exchange: in round k, rank r sends to r + k and receives from r - k.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
// MPICH, Int. J. High Perform. Comput. Appl. 19 (2005), for long vectors. n-1 rounds; like the mesh
// no byte travels twice, but no rank ever hears from two at once.
#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {

void GeneratePairwise(ProgramBuilder& pairs) {
  const int n = pairs.size();
  const bool reduces = IsReduction(pairs.problem().op);
  for (int hop = 1; hop < n; ++hop) {
    for (int from = 0; from < n; ++from) {
      const int to = (from + hop) % n;
      pairs.Send(hop - 1, from, to, reduces ? to : from * n + to);
    }
  }
}

}  // namespace plinth::comm
