// What the ranks put into their buffers and what must come out, exactly.
//
// Element i of a rank's input is one of 16 codes of that rank, picked by a hash of i: no shift,
// swap or lost block keeps the order of the codes. For an operation that reduces, the codes are
// small whole numbers whose exact result, rounded once to the type, is known for each of the 16;
// otherwise they are arbitrary bits. So checking is a table look-up in every type.
#ifndef PLINTH_COMM_BENCH_CASES_PATTERN_H_
#define PLINTH_COMM_BENCH_CASES_PATTERN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Immutable; thread-safe.
class Pattern {
 public:
  // As a source: what the reduction over all ranks gives.
  static constexpr int kReduced = -1;

  // `op` kNone for operations that move data only. CHECKs CanReduce otherwise.
  Pattern(DType dtype, ReduceOp op, int ranks);

  // Writes elements [begin, begin + count) of rank `rank`'s input.
  void Fill(int rank, int64_t begin, int64_t count, void* data) const;
  // How many of `data`'s elements are not [begin, begin + count) of `source`: a rank or kReduced.
  int64_t CountWrong(int source, int64_t begin, int64_t count, const void* data) const;
  // Writes what no source contains, so that an element that was not written is noticed.
  void Poison(int64_t count, void* data) const;

 private:
  static constexpr int kCodes = 16;
  using Codes = std::array<uint64_t, kCodes>;

  const Codes& CodesOf(int source) const;
  double InputOf(int rank, int code) const;
  double ResultOf(int code) const;

  const DType dtype_;
  const ReduceOp op_;
  const int ranks_;
  std::vector<Codes> inputs_;  // by rank
  Codes reduced_ = {};
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_CASES_PATTERN_H_
