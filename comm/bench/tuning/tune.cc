#include "plinth/comm/bench/tuning/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/comm/transport/tcp/connect.h"
#include "plinth/comm/tuner/fit.h"
#include "plinth/hardware/base/median.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostBytes = int64_t{16} << 20;
constexpr int64_t kBytesPerBatch = int64_t{8} << 20;
constexpr int kBatches = 7;
constexpr absl::Duration kTimeout = absl::Seconds(60);

double MicrosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Microseconds of one exchange in which both ranks send and receive `bytes`.
absl::StatusOr<double> TimeExchange(Transport& transport, int64_t bytes, std::byte* sent,
                                    std::byte* received) {
  const int peer = 1 - transport.rank();
  const SendPart sends[] = {{peer, sent, bytes}};
  const ReceivePart receives[] = {{peer, received, bytes}};
  // Both ranks count alike, so no word about it is needed.
  const int64_t calls = std::clamp<int64_t>(kBytesPerBatch / bytes, 2, 2000);
  std::vector<double> times;
  for (int batch = 0; batch <= kBatches; ++batch) {
    const absl::Time deadline = absl::Now() + kTimeout;
    const Clock::time_point start = Clock::now();
    for (int64_t call = 0; call < calls; ++call) {
      if (transport.Exchange(sends, receives, deadline).has_value()) {
        return absl::UnavailableError(
            absl::StrCat("rank ", peer, " failed while messages of ", bytes, " bytes were timed"));
      }
    }
    // The first batch warms up.
    if (batch > 0) times.push_back(MicrosSince(start) / static_cast<double>(calls));
  }
  return Median(times);
}

// Bytes that a sum of two f32 vectors reads, over its microseconds.
double ReduceMbPerS() {
  constexpr int64_t kCount = 1 << 18;
  const std::vector<float> a(kCount, 1), b(kCount, 2);
  std::vector<float> sum(kCount);
  const void* const sources[] = {a.data(), b.data()};
  std::vector<double> times;
  for (int round = 0; round < 4 * kBatches; ++round) {
    const Clock::time_point start = Clock::now();
    Reduce(ReduceOp::kSum, DType::kF32, sources, kCount, sum.data());
    times.push_back(MicrosSince(start));
  }
  return 2.0 * kCount * sizeof(float) / Median(times);
}

absl::StatusOr<std::unique_ptr<Transport>> ConnectPair(const CommOptions& options, Store& store,
                                                       absl::Time deadline) {
  const bool one_host = options.local_size == options.size;
  const bool shm = options.transport == TransportKind::kShm ||
                   (options.transport == TransportKind::kAuto && one_host);
  return shm ? ConnectShm(options, store, deadline) : ConnectTcp(options, store, deadline);
}

}  // namespace

absl::StatusOr<CostTable> MeasureTable(Transport& transport, bool one_host) {
  if (transport.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a link is measured between 2 ranks, not ", transport.size()));
  }
  std::vector<std::byte> sent(kMostBytes), received(kMostBytes);
  std::vector<Sample> samples;
  for (int64_t bytes = 8; bytes <= kMostBytes; bytes *= 4) {
    ASSIGN_OR_RETURN(const double us, TimeExchange(transport, bytes, sent.data(), received.data()));
    samples.push_back({bytes, us});
  }
  ASSIGN_OR_RETURN(const LinkFit fit, FitLink(samples));
  CostTable table = DefaultTable(transport.name());
  // Rounded to what they are worth, for a table that people can read.
  LinkCost& link = one_host ? table.model.local : table.model.remote;
  link = {std::round(fit.cost.alpha_us * 64) / 64, std::round(fit.cost.mb_per_s)};
  table.model.reduce_mb_per_s = std::round(ReduceMbPerS());
  return table;
}

absl::Status RunTune(const CommOptions& options, const std::string& path) {
  const absl::Time deadline = absl::Now() + options.timeout;
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::Open(options, deadline));
  ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport,
                   ConnectPair(options, *store, deadline));
  const bool one_host = options.local_size == options.size;
  ASSIGN_OR_RETURN(const CostTable table, MeasureTable(*transport, one_host));
  if (options.rank != 0) return absl::OkStatus();
  const std::string text =
      absl::StrCat("# Measured: ", one_host ? "local" : "remote",
                   " link, reducing. The rest is built in.\n", FormatTable(table));
  // First to where it cannot fail: a measurement is not lost to a path that does not exist.
  std::printf("%s", text.c_str());
  std::ofstream file(path, std::ios::trunc);
  file << text << std::flush;
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace plinth::comm
