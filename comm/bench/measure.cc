#include "plinth/comm/bench/measure.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "absl/time/clock.h"
#include "plinth/comm/collective/buffer.h"
#include "plinth/comm/collective/reduce.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int64_t kBytesPerBatch = int64_t{64} << 20;

// Small whole numbers, so that sums are exact in both dtypes.
float InputOf(int rank, int64_t i) { return static_cast<float>((i + rank) % 8); }

void Put(DType dtype, std::byte* data, int64_t i, float value) {
  if (dtype == DType::kF32) {
    reinterpret_cast<float*>(data)[i] = value;
  } else {
    reinterpret_cast<uint16_t*>(data)[i] = F32ToBf16(value);
  }
}
float Get(DType dtype, const std::byte* data, int64_t i) {
  return dtype == DType::kF32 ? reinterpret_cast<const float*>(data)[i]
                              : Bf16ToF32(reinterpret_cast<const uint16_t*>(data)[i]);
}

// Wrong elements, summed over the ranks.
absl::StatusOr<int64_t> CountErrors(Communicator& comm, const Buffer& buffer) {
  auto* data = static_cast<std::byte*>(buffer.data);
  for (int64_t i = 0; i < buffer.count; ++i) Put(buffer.dtype, data, i, InputOf(comm.rank(), i));
  RETURN_IF_ERROR(comm.AllReduce(buffer));
  int64_t errors = 0;
  for (int64_t i = 0; i < buffer.count; ++i) {
    float want = 0;
    for (int rank = 0; rank < comm.size(); ++rank) want += InputOf(rank, i);
    errors += Get(buffer.dtype, data, i) != want;
  }
  RETURN_IF_ERROR(comm.AllReduce(BufferOf(std::span<int64_t>(&errors, 1))));
  return errors;
}

// Microseconds per call over `calls` calls, of the slowest rank.
absl::StatusOr<double> TimeBatch(Communicator& comm, const Buffer& buffer, int calls) {
  RETURN_IF_ERROR(comm.Barrier());
  const absl::Time start = absl::Now();
  for (int call = 0; call < calls; ++call) RETURN_IF_ERROR(comm.AllReduce(buffer));
  double us = absl::ToDoubleMicroseconds(absl::Now() - start) / calls;
  RETURN_IF_ERROR(comm.AllReduce(BufferOf(std::span<double>(&us, 1)), ReduceOp::kMax));
  return us;
}

}  // namespace

absl::StatusOr<Measurement> MeasureAllReduce(Communicator& comm, DType dtype, int64_t count,
                                             int batches) {
  CHECK(dtype == DType::kF32 || dtype == DType::kBf16) << dtype;
  CHECK_GE(batches, 1);
  Measurement result;
  result.count = count;
  result.bytes = count * DTypeSize(dtype);
  std::vector<std::byte> storage(result.bytes);
  const Buffer buffer{storage.data(), count, dtype};
  ASSIGN_OR_RETURN(result.errors, CountErrors(comm, buffer));

  const int calls = static_cast<int>(
      std::clamp<int64_t>(kBytesPerBatch / std::max<int64_t>(1, result.bytes), 2, 200));
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    ASSIGN_OR_RETURN(const double us, TimeBatch(comm, buffer, calls));
    times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  const auto percentile = [&](double p) {
    return times[static_cast<size_t>(p * static_cast<double>(times.size() - 1) + 0.5)];
  };
  result.median_us = percentile(0.5);
  result.p10_us = percentile(0.1);
  result.p90_us = percentile(0.9);
  result.algorithm_bandwidth = static_cast<double>(result.bytes) / (result.median_us * 1e3);
  result.bus_bandwidth = result.algorithm_bandwidth * 2 * (comm.size() - 1) / comm.size();
  return result;
}

}  // namespace plinth::comm
