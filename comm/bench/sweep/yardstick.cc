#include "plinth/comm/bench/sweep/yardstick.h"

#include <algorithm>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/bench/report/report.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/direct/stream.h"
#include "plinth/comm/direct/zero_copy_probe.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int kFirstRepeats = 3;
constexpr double kMostRepeats = 1e5;

}  // namespace

absl::StatusOr<std::unique_ptr<Yardstick>> Yardstick::Create(CommOptions options, Store& store,
                                                             int64_t most_bytes) {
  absl::StrAppend(&options.group, " probe");
  const absl::Time deadline = absl::Now() + options.timeout;
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, ConnectShm(options, store, deadline));
  std::unique_ptr<Yardstick> yardstick(new Yardstick(std::move(transport), options.timeout));
  std::optional<PeerFailure> failure;
  ASSIGN_OR_RETURN(yardstick->memory_, yardstick->transport_->shared()->Allocate(
                                           std::max<int64_t>(most_bytes, 1), deadline, failure));
  return yardstick;
}

absl::StatusOr<double> Yardstick::BusBandwidth(Communicator& comm, const Shape& shape,
                                               absl::Duration length) {
  const int64_t bytes =
      ShapeBytes(shape) / static_cast<int64_t>(sizeof(float)) * static_cast<int64_t>(sizeof(float));
  double best = 0;
  for (const StoreTo store : {StoreTo::kCache, StoreTo::kMemory}) {
    int repeats = kFirstRepeats;
    double us = 0;
    for (const bool counts : {false, true}) {
      ASSIGN_OR_RETURN(
          const absl::Duration own,
          ProbeAllReduce(*transport_, memory_, bytes, repeats, store, absl::Now() + timeout_));
      us = absl::ToDoubleMicroseconds(own);
      RETURN_IF_ERROR(comm.AllReduce(BufferOf(std::span<double>(&us, 1)), ReduceOp::kMax));
      // The first, short time tells how many fit.
      if (!counts) {
        const double fit = absl::ToDoubleMicroseconds(length) / 2 / std::max(us, 1e-3);
        repeats = static_cast<int>(std::clamp(fit, 1.0, kMostRepeats));
      }
    }
    best = std::max(best, ::plinth::comm::BusBandwidth(shape, us));
  }
  return best;
}

}  // namespace plinth::comm
