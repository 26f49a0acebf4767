// GB/s of the optimizer over 16 M weights. Argument: threads. AdamW reads w, g, m, v and
// writes w, m, v; SquareSum reads x.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/optimizer/optimizer.h"

namespace plinth {
namespace {

constexpr int64_t kWeights = int64_t{16} << 20;

TensorView Flat(std::vector<float>& values) {
  return TensorView::Contiguous(values.data(), DType::kF32, {static_cast<int64_t>(values.size())});
}

void BM_AdamW(benchmark::State& state) {
  Threads threads(static_cast<int>(state.range(0)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> w(kWeights, 1), g(kWeights, 0.1f), m(kWeights), v(kWeights);
  const AdamWArgs args{.w = Flat(w),
                       .g = Flat(g),
                       .m = Flat(m),
                       .v = Flat(v),
                       .lr = 1e-3f,
                       .beta1 = 0.9f,
                       .beta2 = 0.95f,
                       .eps = 1e-8f,
                       .decay = 0.1f};
  for (auto _ : state) AdamW(args, ctx);
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * 28 * kWeights, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_AdamW)->Arg(1)->Arg(2)->UseRealTime();

void BM_SquareSum(benchmark::State& state) {
  Threads threads(static_cast<int>(state.range(0)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> x(kWeights, 0.5f);
  double sum = 0;
  const SquareSumArgs args{.x = Flat(x), .out = TensorView::Contiguous(&sum, DType::kF64, {1})};
  for (auto _ : state) SquareSum(args, ctx);
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * 4 * kWeights, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_SquareSum)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
