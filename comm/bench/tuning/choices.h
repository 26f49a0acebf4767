// The algorithms behind an operation, as text.
#ifndef PLINTH_COMM_BENCH_TUNING_CHOICES_H_
#define PLINTH_COMM_BENCH_TUNING_CHOICES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/tuner/choice.h"
#include "plinth/comm/tuner/table_set.h"

namespace plinth::comm {

// Nothing for operations that no program describes.
std::optional<OpKind> ProgramOp(BenchOp op);
// Whether the algorithm of that name can do the operation; "auto" can do all.
bool CanPin(const std::string& algorithm, BenchOp op);

// What moves the data of a call: "note", by which the ranks meet and in which little data travels;
// "direct", through memory that all share; or an algorithm, with its slices when several
// ("ring:4"). "-" for operations without a choice.
std::string ChosenAlgorithm(const std::string& transport, const TableSet& tables, const Pins& pins,
                            const Shape& shape);

// Who sends what to whom, for each operation of `config` by each of its algorithms ("auto": the
// first), then the steps of rank 0. kInvalidArgument when no algorithm has any of the operations.
absl::StatusOr<std::string> PrintPrograms(const BenchConfig& config);

// What the tuner chooses and why, for each transport, operation and size of `config`, by its
// tables. kInvalidArgument when none of the operations has programs.
absl::StatusOr<std::string> ExplainChoices(const BenchConfig& config);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_TUNING_CHOICES_H_
