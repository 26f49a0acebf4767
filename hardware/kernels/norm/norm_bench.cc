// GB/s of the norms at the shapes of a GPT-2 124M training step. Arguments: rows, width,
// threads. Bytes are what must move once: forward reads x and writes y; backward reads x
// and dy and writes dx.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/kernels/norm/norm.h"

namespace plinth {
namespace {

struct Setup {
  explicit Setup(const benchmark::State& state)
      : T(state.range(0)),
        D(state.range(1)),
        threads(static_cast<int>(state.range(2))),
        device(*CreateDevice(DeviceKind::kCpu)),
        stream(device->CreateStream()),
        ctx{.stream = stream.get(), .threads = &threads},
        x(T * D, 0.5f),
        y(T * D, 0.25f),
        z(T * D),
        per_column(D, 1.0f),
        per_row(T, 1.0f) {
    for (int64_t i = 0; i < T * D; ++i) x[i] = static_cast<float>(i % 97) - 48;
  }
  TensorView Matrix(std::vector<float>& values) const {
    return TensorView::Contiguous(values.data(), DType::kF32, {T, D});
  }
  static TensorView Vector(std::vector<float>& values) {
    return TensorView::Contiguous(values.data(), DType::kF32,
                                  {static_cast<int64_t>(values.size())});
  }
  void Report(benchmark::State& state, int64_t arrays) const {
    state.counters["GB/s"] = benchmark::Counter(1e-9 * 4 * arrays * T * D,
                                                benchmark::Counter::kIsIterationInvariantRate);
  }

  int64_t T, D;
  Threads threads;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  KernelContext ctx;
  std::vector<float> x, y, z, per_column, per_row;
};

void BM_RmsNorm(benchmark::State& state) {
  Setup s(state);
  const RmsNormArgs args{.x_TD = s.Matrix(s.x),
                         .gain_D = s.Vector(s.per_column),
                         .y_TD = s.Matrix(s.y),
                         .rstd_T = s.Vector(s.per_row),
                         .eps = 1e-5f};
  for (auto _ : state) RmsNorm(args, s.ctx);
  s.Report(state, 2);
}

void BM_LayerNorm(benchmark::State& state) {
  Setup s(state);
  const LayerNormArgs args{.x_TD = s.Matrix(s.x),
                           .gain_D = s.Vector(s.per_column),
                           .bias_D = s.Vector(s.per_column),
                           .y_TD = s.Matrix(s.y),
                           .rstd_T = s.Vector(s.per_row),
                           .eps = 1e-5f};
  for (auto _ : state) LayerNorm(args, s.ctx);
  s.Report(state, 2);
}

void BM_LayerNormBackward(benchmark::State& state) {
  Setup s(state);
  std::vector<float> dgain(s.D), dbias(s.D);
  const LayerNormBackwardArgs args{.x_TD = s.Matrix(s.x),
                                   .gain_D = s.Vector(s.per_column),
                                   .mean_T = s.Vector(s.per_row),
                                   .rstd_T = s.Vector(s.per_row),
                                   .dy_TD = s.Matrix(s.y),
                                   .dx_TD = s.Matrix(s.z),
                                   .dgain_D = s.Vector(dgain),
                                   .dbias_D = s.Vector(dbias)};
  for (auto _ : state) LayerNormBackward(args, s.ctx);
  s.Report(state, 3);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t threads : {1, 2}) bench->Args({1024, 768, threads});
  bench->Args({1, 768, 1});  // a decode step
  bench->UseRealTime();
}
BENCHMARK(BM_RmsNorm)->Apply(Shapes);
BENCHMARK(BM_LayerNorm)->Apply(Shapes);
BENCHMARK(BM_LayerNormBackward)->Apply(Shapes);

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
