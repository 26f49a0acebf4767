// Causal attention with grouped KV heads, over contiguous sequences or a paged cache.
//   out[t,h] = softmax_j(scale * q[t,h] . k[j,g]) . v[j,g]       g = h / (H / KV)
// where j runs over the positions 0..p of t's own sequence, p being t's own position.
//
// Sequences: S of them; the queries of sequence s are rows q_starts[s]..q_starts[s+1] of
// q. Without pages (training) its keys are the same rows of k and v. With pages (serving)
// k and v are the cache [N, KV*D]: position j of sequence s lies in row
// pages[s, j / page_tokens] * page_tokens + j % page_tokens, its queries stand at positions
// past[s], past[s]+1, .., and their keys must already be in the cache.
//
// Order    per query row: keys are taken in tiles of kAttentionTile positions counted from
//          position 0, so a row's result does not depend on T, S, threads or paging.
// Types    f32 (k, v also bf16 with pages); sums in f32.
// Shapes   q, out [T, H*D]; k, v [T, KV*D] or [N, KV*D]; lse [H, T]; H % KV == 0.
//          Rows may be strided. Sequences may be empty.
#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_ATTENTION_H_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_ATTENTION_H_

#include "plinth/hardware/kernels/kernel.h"

namespace plinth {

constexpr int64_t kAttentionTile = 64;

struct AttentionArgs {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView out;
  TensorView lse_HT;    // optional: log-sum-exp of the scaled scores, for backward
  TensorView q_starts;  // i32 [S+1]
  TensorView past;      // i32 [S], with pages
  TensorView pages;     // i32 [S, max_pages], optional
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t page_tokens = 0;
  float scale = 0;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(q);
    visit(k);
    visit(v);
    visit(out);
    visit(lse_HT);
    visit(q_starts);
    visit(past);
    visit(pages);
  }
};

void Attention(const AttentionArgs& args, KernelContext& ctx);

// Gradients for contiguous sequences; dq, dk, dv are overwritten.
struct AttentionBackwardArgs {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView out;
  TensorView lse_HT;
  TensorView q_starts;  // i32 [S+1]
  TensorView dout;
  TensorView dq;
  TensorView dk;
  TensorView dv;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 0;

  template <typename F>
  void ForEachView(F&& visit) {
    visit(q);
    visit(k);
    visit(v);
    visit(out);
    visit(lse_HT);
    visit(q_starts);
    visit(dout);
    visit(dq);
    visit(dk);
    visit(dv);
  }
};

void AttentionBackward(const AttentionBackwardArgs& args, KernelContext& ctx);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_ATTENTION_H_
