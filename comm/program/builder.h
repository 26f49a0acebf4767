// Turns "who sends which block to whom, and when" into programs.
//
// A generator says only that, for all ranks at once, so it reads like the published algorithm:
//
//   void RingAllReduce(ProgramBuilder& ring) {
//     const int n = ring.size();
//     ring.CutInto(n);
//     for (int step = 0; step < n - 1; ++step) {
//       for (int r = 0; r < n; ++r) {
//         ring.Send(step, r, (r + 1) % n, (n + r - step - 1) % n);       // sums go round
//         ring.Send(n - 1 + step, r, (r + 1) % n, (n + r - step) % n);   // results go round
//       }
//     }
//   }
//
// The builder keeps the books of what every rank holds of every block and from that derives what
// is sent (input, partial sum or finished block), where it is received, what is reduced when, and
// the scratch slots.
#ifndef PLINTH_COMM_PROGRAM_BUILDER_H_
#define PLINTH_COMM_PROGRAM_BUILDER_H_

#include <cstdint>
#include <vector>

#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"

namespace plinth::comm {

// Not thread-safe.
class ProgramBuilder {
 public:
  struct Transfer {
    int round;
    int from;
    int to;
    int32_t block;
  };

  explicit ProgramBuilder(const Problem& problem);

  const Problem& problem() const { return problem_; }
  int size() const { return problem_.size; }
  int32_t blocks() const { return blocks_; }
  // The first round after all that were used so far.
  int next_round() const { return next_round_; }

  // Into how many blocks the vector is cut: 1 unless told otherwise, for all_reduce, reduce and
  // broadcast. Other operations say themselves and ignore it. Before the first Send.
  void CutInto(int32_t blocks);

  // In `round`, rank `from` sends what it holds of `block` to rank `to`: its input, or the sum of
  // that with what it has received before this round, or the block itself where that is finished.
  // A sum that lacks contributions is handed over: its sender holds nothing of the block after
  // that. A receiver adds all that comes in a round to what it holds, in the order of the ranks
  // that sent it. Rounds in any order; CHECKs at Build that `from` holds something.
  void Send(int round, int from, int to, int32_t block);

  RankProgram Build(int rank) const;
  std::vector<RankProgram> BuildAll() const;

 private:
  const Problem problem_;
  int32_t blocks_;
  int next_round_ = 0;
  std::vector<Transfer> transfers_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_PROGRAM_BUILDER_H_
