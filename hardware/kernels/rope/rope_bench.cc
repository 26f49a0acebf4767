// GB/s (read plus written) of Rope. Arguments: tokens, heads; heads are 64 wide.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/rope/rope.h"

namespace plinth {
namespace {

void BM_Rope(benchmark::State& state) {
  const int64_t T = state.range(0), heads = state.range(1), width = heads * 64;
  Threads threads(1);
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> x(T * width, 0.5f), inv_freq(32, 0.01f);
  std::vector<int32_t> positions(T);
  for (int64_t t = 0; t < T; ++t) positions[t] = static_cast<int32_t>(t);
  const auto view = TensorView::Contiguous(x.data(), DType::kF32, {T, width});
  const RopeArgs args{.x = view,
                      .positions = TensorView::Contiguous(positions.data(), DType::kI32, {T}),
                      .inv_freq = TensorView::Contiguous(inv_freq.data(), DType::kF32, {32}),
                      .y = view,
                      .heads = heads,
                      .head_dim = 64};
  for (auto _ : state) Rope(args, ctx);
  state.SetBytesProcessed(state.iterations() * 2 * view.bytes());
}
BENCHMARK(BM_Rope)->Args({1, 12})->Args({1024, 12})->Args({1024, 2});

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
