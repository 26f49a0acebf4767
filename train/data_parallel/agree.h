// Small agreements between ranks.
#ifndef PLINTH_TRAIN_DATA_PARALLEL_AGREE_H_
#define PLINTH_TRAIN_DATA_PARALLEL_AGREE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "plinth/comm/comm.h"
#include "plinth/hardware/device/device.h"
#include "plinth/models/nn/parameter.h"

namespace plinth::train {

// OK on every rank when it was OK on all. Else each rank returns an error: its own, or
// kAborted "rank 2 failed: <what>". Every rank must call it at the same place.
absl::Status AllOk(comm::Communicator& comm, const absl::Status& mine, std::string_view what);

// Compares a checksum of all parameter values between ranks: data-parallel training is wrong
// from the first step on when they differ. kFailedPrecondition names a rank that differs from
// rank 0. Reads every parameter back through the stream.
absl::Status CheckEqualWeights(comm::Communicator& comm,
                               std::span<models::Parameter* const> parameters, Stream& stream);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_DATA_PARALLEL_AGREE_H_
