// All measurements within one group.
#ifndef PLINTH_COMM_BENCH_SWEEP_GROUP_SWEEP_H_
#define PLINTH_COMM_BENCH_SWEEP_GROUP_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/cases/pattern.h"
#include "plinth/comm/bench/config.h"
#include "plinth/comm/bench/peers/peer.h"
#include "plinth/comm/bench/report/printer.h"
#include "plinth/comm/bench/report/report.h"
#include "plinth/comm/bench/sweep/yardstick.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/tuner/choice.h"

namespace plinth::comm {

// Every rank makes one and runs it; rank 0's printer gets the rows. What it is given outlives it.
class GroupSweep {
 public:
  // What may stand beside it; each may be null.
  struct Beside {
    Peer* peer = nullptr;
    Yardstick* yardstick = nullptr;
    int gpu = -1;  // whose memory calls get; -1: the host's
  };

  // `algorithm`: a name, or "auto". `pins`: those of the group.
  GroupSweep(const BenchConfig& config, std::string algorithm, Pins pins, Communicator& comm,
             const Beside& beside, Printer& printer);

  absl::Status Run();

 private:
  // Page-aligned memory of this process.
  struct PageDelete {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{4096}); }
  };
  // Where calls find their input and leave their result.
  struct Memory {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
  };

  absl::Status Prepare();
  absl::Status Allocate(int64_t most_bytes);
  absl::StatusOr<Row> MeasureRow(const Shape& shape);
  absl::StatusOr<Cell> MeasureCell(const Shape& shape, bool in_place);
  // Input in place, and output such that a missing write shows.
  void SetUp(const Shape& shape, const Pattern& pattern, const CallBuffers& buffers);

  const BenchConfig& config_;
  const std::string algorithm_;
  const Pins pins_;
  Communicator& comm_;
  Peer* const peer_;
  Yardstick* const yardstick_;
  const int gpu_;
  Printer& printer_;
  RunInfo info_;
  std::unique_ptr<std::byte[], PageDelete> private_memory_;
  SharedMemory gpu_memory_;
  SharedMemory registered_in_;
  SharedMemory registered_out_;
  Memory ours_;
  Memory theirs_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_SWEEP_GROUP_SWEEP_H_
