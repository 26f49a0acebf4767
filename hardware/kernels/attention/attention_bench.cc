// Attention of one thread. Training: GFLOP/s of Attention and AttentionBackward for 4
// sequences of 12 heads of 64 (4 D flops for each visible pair of query and key forward, 10
// backward). Decode: GB/s of the keys and values read for 8 sequences, one query each.
#include <vector>

#include "benchmark/benchmark.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/attention/attention.h"

namespace plinth {
namespace {

constexpr int64_t kHeads = 12, kHeadDim = 64, kWidth = kHeads * kHeadDim, kPageTokens = 16;

struct Context {
  Threads threads{1};
  std::unique_ptr<Device> device = *CreateDevice(DeviceKind::kCpu);
  std::unique_ptr<Stream> stream = device->CreateStream();
  CachingAllocator allocator{device.get()};
  KernelContext ctx{.stream = stream.get(), .threads = &threads, .scratch = &allocator};

  // Device memory, as a program has it: large blocks lie in huge pages.
  Tensor Zeros(DType dtype, const Shape& shape) {
    Tensor tensor = Tensor::New(allocator, dtype, shape);
    stream->FillZero(tensor.view().data, tensor.view().bytes());
    return tensor;
  }
  Tensor Ints(const std::vector<int32_t>& values, const Shape& shape) {
    Tensor tensor = Tensor::New(allocator, DType::kI32, shape);
    stream->CopyIn(tensor.view().data, values.data(), tensor.view().bytes());
    return tensor;
  }
};

void BM_Training(benchmark::State& state, bool backward) {
  Context context;
  const int64_t S = 4, length = state.range(0), T = S * length;
  const auto rows = [&] { return context.Zeros(DType::kF32, {T, kWidth}); };
  const Tensor q = rows(), k = rows(), v = rows(), out = rows();
  const Tensor dout = rows(), dq = rows(), dk = rows(), dv = rows();
  const Tensor lse = context.Zeros(DType::kF32, {kHeads, T});
  std::vector<int32_t> starts;
  for (int64_t s = 0; s <= S; ++s) starts.push_back(static_cast<int32_t>(s * length));
  const Tensor q_starts = context.Ints(starts, {S + 1});
  const AttentionArgs forward_args{.q = q.view(),
                                   .k = k.view(),
                                   .v = v.view(),
                                   .out = out.view(),
                                   .lse_HT = lse.view(),
                                   .q_starts = q_starts.view(),
                                   .heads = kHeads,
                                   .kv_heads = kHeads,
                                   .head_dim = kHeadDim,
                                   .scale = 0.125f};
  const AttentionBackwardArgs backward_args{.q = q.view(),
                                            .k = k.view(),
                                            .v = v.view(),
                                            .out = out.view(),
                                            .lse_HT = lse.view(),
                                            .q_starts = q_starts.view(),
                                            .dout = dout.view(),
                                            .dq = dq.view(),
                                            .dk = dk.view(),
                                            .dv = dv.view(),
                                            .heads = kHeads,
                                            .kv_heads = kHeads,
                                            .head_dim = kHeadDim,
                                            .scale = 0.125f};
  Attention(forward_args, context.ctx);
  for (auto _ : state) {
    if (backward) {
      AttentionBackward(backward_args, context.ctx);
    } else {
      Attention(forward_args, context.ctx);
    }
  }
  const double pairs = 0.5 * static_cast<double>(S * kHeads * length * (length + 1));
  state.counters["GFLOP/s"] = benchmark::Counter((backward ? 10e-9 : 4e-9) * kHeadDim * pairs,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(BM_Training, forward, false)->Arg(64)->Arg(256)->Arg(1024);
BENCHMARK_CAPTURE(BM_Training, backward, true)->Arg(64)->Arg(256)->Arg(1024);

void BM_Decode(benchmark::State& state, DType dtype) {
  Context context;
  const int64_t S = 8, length = state.range(0), pages_each = length / kPageTokens;
  const Tensor k = context.Zeros(dtype, {S * length, kWidth});
  const Tensor v = context.Zeros(dtype, {S * length, kWidth});
  const Tensor q = context.Zeros(DType::kF32, {S, kWidth});
  const Tensor out = context.Zeros(DType::kF32, {S, kWidth});
  std::vector<int32_t> starts, pages;
  for (int32_t s = 0; s <= S; ++s) starts.push_back(s);
  for (int32_t page = 0; page < S * pages_each; ++page) pages.push_back(page);
  const Tensor q_starts = context.Ints(starts, {S + 1});
  const Tensor past = context.Ints(std::vector<int32_t>(S, static_cast<int32_t>(length - 1)), {S});
  const Tensor page_table = context.Ints(pages, {S, pages_each});
  const AttentionArgs args{.q = q.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .out = out.view(),
                           .q_starts = q_starts.view(),
                           .past = past.view(),
                           .pages = page_table.view(),
                           .heads = kHeads,
                           .kv_heads = kHeads,
                           .head_dim = kHeadDim,
                           .page_tokens = kPageTokens,
                           .scale = 0.125f};
  for (auto _ : state) Attention(args, context.ctx);
  state.SetBytesProcessed(state.iterations() * 2 * k.view().bytes());
}
BENCHMARK_CAPTURE(BM_Decode, f32, DType::kF32)->Arg(256)->Arg(1024);
BENCHMARK_CAPTURE(BM_Decode, bf16, DType::kBf16)->Arg(256)->Arg(1024);

}  // namespace
}  // namespace plinth

BENCHMARK_MAIN();
