// What a call costs by itself: an all-reduce of 8 bytes over a transport that takes no time.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plinth/comm/collective/communicator.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

// Rank 0 of 8 ranks that say the same.
class Echo final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 8; }
  std::string_view name() const override { return "echo"; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart>, std::span<const ReceivePart>,
                                      absl::Time) override {
    return std::nullopt;
  }
  std::optional<PeerFailure> Announce(std::span<const std::byte> note,
                                      std::vector<std::span<const std::byte>>& notes,
                                      absl::Time) override {
    notes.assign(size(), note);
    return std::nullopt;
  }
  void Abort(std::string_view) override {}
};

void AllReduceOf8Bytes(benchmark::State& state) {
  Communicator comm(std::make_unique<Echo>(), absl::Seconds(1));
  double value = 0;
  for (auto _ : state) {
    value = 1;
    CHECK_OK(comm.AllReduce(BufferOf(std::span<double>(&value, 1))));
    benchmark::DoNotOptimize(value);
  }
  CHECK_EQ(value, 8);
}
BENCHMARK(AllReduceOf8Bytes);

}  // namespace
}  // namespace plinth::comm

BENCHMARK_MAIN();
