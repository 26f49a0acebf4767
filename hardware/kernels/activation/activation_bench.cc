// GB/s of the activations at the shapes of a GPT-2 124M training step. Arguments: rows,
// width, threads. Bytes are those of the arrays read and written once.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/activation/activation.h"

namespace plinth {
namespace {

enum class Kernel { kGelu, kGeluBackward, kSwiGlu, kSwiGluBackward };

void BM_Activation(benchmark::State& state, Kernel kernel) {
  const int64_t n = state.range(0) * state.range(1);
  Threads threads(static_cast<int>(state.range(2)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> data[5];
  TensorView view[5];
  for (int i = 0; i < 5; ++i) {
    data[i].resize(n);
    for (int64_t k = 0; k < n; ++k) data[i][k] = static_cast<float>(k % 97) * 0.1f - 5;
    view[i] = TensorView::Contiguous(data[i].data(), DType::kF32, {n});
  }
  int64_t arrays = 0;
  for (auto _ : state) {
    switch (kernel) {
      case Kernel::kGelu:
        Gelu({.x = view[0], .y = view[1]}, ctx);
        arrays = 2;
        break;
      case Kernel::kGeluBackward:
        GeluBackward({.x = view[0], .dy = view[1], .dx = view[2]}, ctx);
        arrays = 3;
        break;
      case Kernel::kSwiGlu:
        SwiGlu({.gate = view[0], .up = view[1], .y = view[2]}, ctx);
        arrays = 3;
        break;
      case Kernel::kSwiGluBackward:
        SwiGluBackward(
            {.gate = view[0], .up = view[1], .dy = view[2], .dgate = view[3], .dup = view[4]}, ctx);
        arrays = 5;
        break;
    }
  }
  state.counters["GB/s"] =
      benchmark::Counter(1e-9 * 4 * arrays * n, benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t threads : {1, 2}) bench->Args({1024, 3072, threads});
  bench->Args({16, 3072, 1});  // in cache
  bench->UseRealTime();
}
BENCHMARK_CAPTURE(BM_Activation, gelu, Kernel::kGelu)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Activation, gelu_backward, Kernel::kGeluBackward)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Activation, swiglu, Kernel::kSwiGlu)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Activation, swiglu_backward, Kernel::kSwiGluBackward)->Apply(Shapes);

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
