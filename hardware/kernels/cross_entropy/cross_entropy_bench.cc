// GB/s of CrossEntropy at GPT-2's vocabulary. Arguments: rows, classes, gradient, threads.
// Bytes are those of the logits: read once, and written once with the gradient.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/cross_entropy/cross_entropy.h"

namespace plinth {
namespace {

void BM_CrossEntropy(benchmark::State& state) {
  const int64_t T = state.range(0), V = state.range(1);
  const bool gradient = state.range(2) != 0;
  Threads threads(static_cast<int>(state.range(3)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> logits(T * V), loss(T);
  for (int64_t i = 0; i < T * V; ++i) logits[i] = static_cast<float>(i % 97) * 0.1f - 5;
  std::vector<int32_t> targets(T, 7);
  const CrossEntropyArgs args{
      .logits_TV = TensorView::Contiguous(logits.data(), DType::kF32, {T, V}),
      .targets_T = TensorView::Contiguous(targets.data(), DType::kI32, {T}),
      .loss_T = TensorView::Contiguous(loss.data(), DType::kF32, {T}),
      .gradient = gradient};
  for (auto _ : state) CrossEntropy(args, ctx);
  state.counters["GB/s"] = benchmark::Counter(1e-9 * 4 * (gradient ? 2 : 1) * T * V,
                                              benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_CrossEntropy)
    ->Args({256, 50257, 0, 1})
    ->Args({256, 50257, 0, 2})
    ->Args({256, 50257, 1, 1})
    ->Args({256, 50257, 1, 2})
    ->UseRealTime();

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
