// The backend that runs every operation on every transport: programs, executed over messages.
#ifndef PLINTH_COMM_EXECUTOR_PROGRAM_BACKEND_H_
#define PLINTH_COMM_EXECUTOR_PROGRAM_BACKEND_H_

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/executor/executor.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/program/program.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/comm/tuner/choice.h"
#include "plinth/comm/tuner/table.h"

namespace plinth::comm {

// "auto" or nothing: no pin. The name of an algorithm: wherever it can do the operation. Otherwise
// what ParsePins takes, "all_reduce=ring:16,broadcast=double_tree", with its errors.
absl::StatusOr<Pins> PinsOf(std::string_view text);

// A program is generated when an operation first needs it, and kept. Used by one thread at a time.
class ProgramBackend final : public Backend {
 public:
  // The transport outlives it. `pins` are the algorithms that the user insists on, the others are
  // chosen by `table`; `ranks_per_host` is what GroupInfo says.
  ProgramBackend(Transport* transport, CostTable table, Pins pins, int ranks_per_host);

  std::string_view name() const override { return "program"; }
  bool Takes(const CollectiveCall& call) const override;
  absl::Status Run(const CollectiveCall& call, absl::Time deadline) override;
  // Nothing of its own: the transport's exchanges end when the group is aborted.
  void Abort() override {}

 private:
  // Operation, root and algorithm.
  using Key = std::tuple<OpKind, int, const Algorithm*>;

  const RankProgram& ProgramFor(const CollectiveCall& call, const Algorithm& algorithm);

  Transport& transport_;
  const int ranks_per_host_;
  Tuner tuner_;
  Executor executor_;
  std::map<Key, RankProgram> programs_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_EXECUTOR_PROGRAM_BACKEND_H_
