// GFLOP/s of Matmul for the three products of a training step: forward, the gradient of
// the input, and the gradient of the weight. Arguments: rows, in, out, threads.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/matmul/matmul.h"

namespace plinth {
namespace {

enum class Product { kForward, kInputGradient, kWeightGradient };

void BM_Matmul(benchmark::State& state, Product product) {
  const int64_t T = state.range(0), I = state.range(1), O = state.range(2);
  Threads threads(static_cast<int>(state.range(3)));
  const auto device = *CreateDevice(DeviceKind::kCpu);
  const auto stream = device->CreateStream();
  KernelContext ctx{.stream = stream.get(), .threads = &threads};
  std::vector<float> x(T * I, 0.5f), w(O * I, 0.25f), y(T * O, 1.0f);
  MatmulArgs args{.a = TensorView::Contiguous(x.data(), DType::kF32, {T, I}),
                  .b = TensorView::Contiguous(w.data(), DType::kF32, {O, I}),
                  .c_MN = TensorView::Contiguous(y.data(), DType::kF32, {T, O}),
                  .transpose_b = true};
  if (product == Product::kInputGradient) {
    std::swap(args.a, args.c_MN);
    args.transpose_b = false;
  } else if (product == Product::kWeightGradient) {
    args = {.a = args.c_MN, .b = args.a, .c_MN = args.b, .transpose_a = true, .accumulate = true};
  }
  for (auto _ : state) Matmul(args, ctx);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * T * I * O, benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t threads : {1, 2}) {
    bench->Args({256, 768, 3072, threads})->Args({1024, 768, 768, threads});
  }
  bench->UseRealTime()->MeasureProcessCPUTime();
}
BENCHMARK_CAPTURE(BM_Matmul, forward, Product::kForward)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Matmul, input_gradient, Product::kInputGradient)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Matmul, weight_gradient, Product::kWeightGradient)->Apply(Shapes);

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
