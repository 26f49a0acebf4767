// Linear with packed weights: GB/s of weights for few rows (decode), GFLOP/s for many
// (prefill). Arguments: rows, in, out, threads. Decode walks through layers that together
// exceed the last-level cache, as a model does.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/linear/linear.h"

namespace plinth {
namespace {

constexpr int64_t kBytesOfWeights = int64_t{256} << 20;

void BM_Linear(benchmark::State& state, DType dtype) {
  const int64_t T = state.range(0), I = state.range(1), O = state.range(2);
  Threads threads(static_cast<int>(state.range(3)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> x(T * I, 0.5f), y(T * O);
  const Shape shape{O / kLinearPanel, I, kLinearPanel};
  const int64_t bytes = shape.elements() * DTypeSize(dtype);
  const int64_t layers = T < 16 ? kBytesOfWeights / bytes : 1;
  auto* const weights = static_cast<char*>(*device->Allocate(layers * bytes));
  std::fill_n(weights, layers * bytes, 0);
  int64_t layer = 0;
  for (auto _ : state) {
    Linear({.x_TI = TensorView::Contiguous(x.data(), DType::kF32, {T, I}),
            .w = TensorView::Contiguous(weights + layer * bytes, dtype, shape),
            .y_TO = TensorView::Contiguous(y.data(), DType::kF32, {T, O}),
            .packed = true},
           ctx);
    layer = (layer + 1) % layers;
  }
  device->Free(weights, layers * bytes);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * T * I * O, benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t T : {1, 4, 16, 256}) {
    for (const int64_t threads : {1, 2}) bench->Args({T, 768, 3072, threads});
  }
  bench->UseRealTime()->MeasureProcessCPUTime();
}
BENCHMARK_CAPTURE(BM_Linear, f32, DType::kF32)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Linear, bf16, DType::kBf16)->Apply(Shapes);

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
