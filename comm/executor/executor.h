// Runs programs over a message transport.
#ifndef PLINTH_COMM_EXECUTOR_EXECUTOR_H_
#define PLINTH_COMM_EXECUTOR_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/executor/block_layout.h"
#include "plinth/comm/program/program.h"
#include "plinth/comm/program/slice.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// How long vectors go through a program; equal on all ranks.
struct Slicing {
  int slices = 1;          // parts that every block is worked on in
  bool pipelined = false;  // later slices start before earlier ones end
};

// What each rank executes is its own program of one algorithm; see program.h for what that means
// and slice.h for the steps. Neighbouring blocks for one peer travel as one part. Scratch memory
// is kept from call to call. Used by one thread at a time.
class Executor {
 public:
  // The transport outlives the executor.
  explicit Executor(Transport* transport) : transport_(*transport) {}

  // Returns when this rank's part is done, or with the failure of the exchange that broke it.
  std::optional<PeerFailure> Run(const RankProgram& program, const CollectiveCall& call,
                                 const Slicing& slicing, absl::Time deadline);

 private:
  // One call under way.
  struct Job {
    const CollectiveCall& call;
    BlockLayout layout;
    Schedule schedule;
    int64_t width;              // bytes of an element
    int64_t accumulator_width;  // and of a partial sum
    int64_t slot_bytes;
    int32_t slots;  // per slice in flight
  };
  struct Bytes {
    std::byte* data;
    int64_t count;
  };

  Bytes Locate(const Job& job, const BlockRef& ref, int slice);
  void Queue(const Job& job, const Round& round, int slice);
  void Compute(const Job& job, const ComputeStep& step, int slice);

  Transport& transport_;
  // Reused between calls.
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  std::vector<ReduceSource> sources_;
  std::vector<std::byte> scratch_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_EXECUTOR_EXECUTOR_H_
