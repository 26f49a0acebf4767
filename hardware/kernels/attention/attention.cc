#include "plinth/hardware/kernels/attention/attention.h"

#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/attention/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {
namespace {

// What forward and backward have in common; both sets of arguments spell it the same.
template <typename Args>
void CheckHeads(const Args& args) {
  CHECK_GT(args.kv_heads, 0) << " in attention";
  CHECK_EQ(args.heads % args.kv_heads, 0)
      << " in attention: heads " << args.heads << ", kv_heads " << args.kv_heads;
  CHECK_GE(args.head_dim, 1) << " in attention";
  CHECK_GE(args.q_starts.dim(0), 1) << " in attention: q_starts";
}

}  // namespace

void Attention(const AttentionArgs& args, KernelContext& ctx) {
  CheckHeads(args);
  const bool paged = args.pages.data != nullptr;
  Dim T{"T"}, S{"S", args.q_starts.dim(0) - 1}, starts{"S+1"}, H{"H", args.heads};
  Dim q_width{"H*D", args.heads * args.head_dim}, kv_width{"KV*D", args.kv_heads * args.head_dim};
  Dim N{"N"}, max_pages{"max_pages"};
  Dim& keys = paged ? N : T;
  const DType kv = paged && args.k.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32;
  ShapeCheck check("attention");
  check("q", args.q, DType::kF32, {&T, &q_width})("out", args.out, DType::kF32, {&T, &q_width});
  check("k", args.k, kv, {&keys, &kv_width})("v", args.v, kv, {&keys, &kv_width});
  check("q_starts", args.q_starts, DType::kI32, {&starts});
  if (args.lse_HT.data != nullptr) check("lse", args.lse_HT, DType::kF32, {&H, &T});
  if (paged) {
    check("pages", args.pages, DType::kI32, {&S, &max_pages});
    check("past", args.past, DType::kI32, {&S});
    CHECK_GE(args.page_tokens, 1) << " in attention";
  }
  const Tensor scratch =
      Tensor::New(*ctx.scratch, DType::kF32, cpu::AttentionScratch(args, *ctx.threads));
  LaunchOnHost(ctx, cpu::AttentionTask{args, scratch.view()}, &cpu::Attention);
}

void AttentionBackward(const AttentionBackwardArgs& args, KernelContext& ctx) {
  CheckHeads(args);
  Dim T{"T"}, starts{"S+1"}, H{"H", args.heads};
  Dim q_width{"H*D", args.heads * args.head_dim}, kv_width{"KV*D", args.kv_heads * args.head_dim};
  ShapeCheck check("attention_backward");
  check("q", args.q, DType::kF32, {&T, &q_width})("out", args.out, DType::kF32, {&T, &q_width});
  check("dout", args.dout, DType::kF32, {&T, &q_width})("dq", args.dq, DType::kF32, {&T, &q_width});
  check("k", args.k, DType::kF32, {&T, &kv_width})("v", args.v, DType::kF32, {&T, &kv_width});
  check("dk", args.dk, DType::kF32, {&T, &kv_width})("dv", args.dv, DType::kF32, {&T, &kv_width});
  check("lse", args.lse_HT, DType::kF32, {&H, &T});
  check("q_starts", args.q_starts, DType::kI32, {&starts});
  const Tensor scratch =
      Tensor::New(*ctx.scratch, DType::kF32, cpu::AttentionBackwardScratch(args, *ctx.threads));
  const Tensor delta_TH = Tensor::New(*ctx.scratch, DType::kF32, {args.q.dim(0), args.heads});
  LaunchOnHost(ctx, cpu::AttentionBackwardTask{args, scratch.view(), delta_TH.view()},
               &cpu::AttentionBackward);
}

}  // namespace plinth
