// Which algorithm moves the data of a call, and in how many slices.
//
// The price (cost.h) of every algorithm that can do the operation is worked out for a few numbers
// of slices, and the lowest one wins. It depends on nothing but the question, the table and the
// pins, so all ranks choose alike, and so do two runs.
#ifndef PLINTH_COMM_TUNER_CHOICE_H_
#define PLINTH_COMM_TUNER_CHOICE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/tuner/cost.h"
#include "plinth/comm/tuner/table.h"

namespace plinth::comm {

// Not in algorithms.h: through memory that all ranks share, without a program.
inline constexpr std::string_view kDirect = "direct";

// An algorithm that the user insists on.
struct Pin {
  std::string algorithm;  // a name of algorithms.h, or kDirect
  int slices = 0;         // 0: as priced
};
// By operation. A v-operation without one takes its plain namesake's if that algorithm can do it.
using Pins = std::map<OpKind, Pin>;

// "all_reduce=ring,broadcast=double_tree:16": operation=algorithm or operation=algorithm:slices,
// separated by commas; nothing at all is no pin. kInvalidArgument for names that are not known (and
// lists those that are), an algorithm that cannot do the operation, an operation given twice, and
// slices outside of 1 .. kMostSlices.
absl::StatusOr<Pins> ParsePins(std::string_view text);

inline constexpr int kMostSlices = 1 << 14;

struct Question {
  OpKind op = OpKind::kAllReduce;
  int size = 1;
  int ranks_per_host = 1;  // as in Problem; `size` or more: all on one host
  // Volume::bytes. Every rank must give the same.
  int64_t bytes = 0;
  int element_bytes = 4;
  int partial_bytes = 4;  // of a partial sum: 4 for bf16
  bool direct = false;    // whether memory shared by all ranks can be used for this call

  auto Key() const {
    return std::tuple(op, size, ranks_per_host, bytes, element_bytes, partial_bytes, direct);
  }
};

struct Choice {
  std::string_view algorithm;  // lives for ever
  int slices = 1;              // for `direct`: 1
  bool pipelined = false;      // as Algorithm::pipelined; see Schedule in slice.h
  double estimate_us = 0;
};

// Answers are kept by operation and size class: bytes are priced as the power of two above.
// Thread-safe.
class Tuner {
 public:
  explicit Tuner(CostTable table, Pins pins = {});

  // The root of an operation does not matter: it is chosen as for rank 0.
  // kFailedPrecondition if `direct` is pinned for the operation but this call cannot use it.
  // Cost: a look-up; the first time for a class, some milliseconds at tens of ranks.
  absl::StatusOr<Choice> Choose(const Question& question);

  // What was chosen and why, and the other candidates with their estimates, cheapest first. Text
  // for people.
  std::string Explain(const Question& question) const;

  const CostTable& table() const { return table_; }

 private:
  std::vector<Choice> Candidates(const Question& question) const;
  absl::StatusOr<Choice> Decide(const Question& question) const;
  std::optional<Pin> PinFor(OpKind op) const;

  const CostTable table_;
  const Pins pins_;
  std::mutex mutex_;  // guards what follows
  std::map<decltype(Question{}.Key()), Choice> known_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TUNER_CHOICE_H_
