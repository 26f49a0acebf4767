#include <algorithm>
#include <atomic>
#include <utility>

#include "plinth/hardware/kernels/attention/blocks.h"
#include "plinth/hardware/kernels/attention/cpu.h"

// Machines without AVX2 run the scalar code: two targets fewer to compile.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/attention/cpu_backward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plinth/hardware/kernels/attention/tile.h"
#include "plinth/hardware/kernels/panel_product.h"
#include "plinth/hardware/kernels/vector_math.h"

#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_BACKWARD_ONCE_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_BACKWARD_ONCE_
namespace plinth {

// A thread's temporaries. R is the rows of a block of queries, 64 those of a tile of keys.
struct BackwardScratch {
  float *keys, *turned_keys;      // [64, Dp], [Dp, 64]
  float *values, *turned_values;  // [64, Dp], [Dp, 64]
  float *dkeys, *dvalues;         // [64, Dp]
  float *q, *dout, *dq;           // [R, Dp]
  float *p, *ds;                  // [R, 64]   probabilities, gradient of scaled scores

  BackwardScratch(float* base, int64_t rows, int64_t Dp) {
    const auto take = [&base](int64_t n) { return std::exchange(base, base + n); };
    const int64_t tile = kAttentionTile * Dp;
    keys = take(tile), turned_keys = take(tile), values = take(tile), turned_values = take(tile);
    dkeys = take(tile), dvalues = take(tile);
    q = take(rows * Dp), dout = take(rows * Dp), dq = take(rows * Dp);
    p = take(rows * kAttentionTile), ds = take(rows * kAttentionTile);
  }
  static int64_t Floats(int64_t rows, int64_t Dp) {
    return 6 * kAttentionTile * Dp + rows * (3 * Dp + 2 * kAttentionTile);
  }
};

}  // namespace plinth
#endif

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

constexpr int64_t kTile = kAttentionTile;
constexpr int64_t kLanes = kPanel / kPanelVecs;

// The gradients of one KV head of one sequence, all by one thread and in one order:
// tiles of keys from the first, and for each the blocks of queries that see it.
//   p = exp(scale q.k - lse)   dv += p^T dout   ds = scale p (dout.v - delta)
//   dk += ds^T q               dq += ds k
class HeadBackward {
 public:
  HeadBackward(const cpu::AttentionBackwardTask& task, float* scratch)
      : args_(task.args),
        delta_(task.delta_TH),
        group_(HeadGroup::Of(args_.heads, args_.kv_heads)),
        D_(args_.head_dim),
        Dp_(PanelColumns(args_.head_dim)),
        scratch_(scratch, group_.rows(), Dp_) {}

  // Rows [begin, end) are the sequence.
  void Run(int64_t begin, int64_t end, int64_t kv_head) {
    begin_ = begin, kv_head_ = kv_head;
    for (int64_t first = 0; first < end - begin; first += kTile) {
      Tile(first, std::min(kTile, end - begin - first), end - begin);
    }
  }

 private:
  static float* At(const TensorView& view, int64_t row, int64_t column) {
    return view.ptr<float>() + row * view.strides[0] + column;
  }
  int64_t Head(int64_t r) const { return kv_head_ * group_.heads + r % group_.heads; }
  int64_t Row(int64_t token, int64_t r) const { return begin_ + token + r / group_.heads; }

  void Tile(int64_t first, int64_t count, int64_t tokens) {
    const int64_t column = kv_head_ * D_, full = PanelColumns(count);
    for (int64_t j = 0; j < count; ++j) {
      CopyRow(At(args_.k, begin_ + first + j, column), D_, scratch_.keys + j * Dp_);
      CopyRow(At(args_.v, begin_ + first + j, column), D_, scratch_.values + j * Dp_);
    }
    std::fill(scratch_.keys + count * Dp_, scratch_.keys + full * Dp_, 0.0f);
    std::fill(scratch_.values + count * Dp_, scratch_.values + full * Dp_, 0.0f);
    Transpose(scratch_.keys, full, D_, scratch_.turned_keys);
    Transpose(scratch_.values, full, D_, scratch_.turned_values);
    std::fill_n(scratch_.dkeys, count * Dp_, 0.0f);
    std::fill_n(scratch_.dvalues, count * Dp_, 0.0f);
    for (int64_t token = first / group_.tokens * group_.tokens; token < tokens;
         token += group_.tokens) {
      Queries(token, std::min(group_.tokens, tokens - token), first, count);
    }
    for (int64_t j = 0; j < count; ++j) {
      std::copy_n(scratch_.dkeys + j * Dp_, D_, At(args_.dk, begin_ + first + j, column));
      std::copy_n(scratch_.dvalues + j * Dp_, D_, At(args_.dv, begin_ + first + j, column));
    }
  }

  // What the block of queries at `token` adds for the tile of keys at `first`.
  void Queries(int64_t token, int64_t tokens, int64_t first, int64_t count) {
    const int64_t rows = tokens * group_.heads;
    for (int64_t r = 0; r < rows; ++r) {
      CopyRow(At(args_.q, Row(token, r), Head(r) * D_), D_, scratch_.q + r * Dp_);
      CopyRow(At(args_.dout, Row(token, r), Head(r) * D_), D_, scratch_.dout + r * Dp_);
      // dq holds what the tiles before this one added; the first tile is seen by all.
      if (first > 0) CopyRow(At(args_.dq, Row(token, r), Head(r) * D_), D_, scratch_.dq + r * Dp_);
    }
    const PanelProduct<float> scores{.a = scratch_.q,
                                     .a_row = Dp_,
                                     .b = scratch_.turned_keys,
                                     .b_panel = kPanel,
                                     .b_k = kTile,
                                     .c = scratch_.p,
                                     .c_row = kTile,
                                     .rows = rows,
                                     .panels = PanelColumns(count) / kPanel,
                                     .K = D_};
    Multiply(scores);
    PanelProduct<float> gradients = scores;
    gradients.a = scratch_.dout, gradients.b = scratch_.turned_values, gradients.c = scratch_.ds;
    Multiply(gradients);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t visible = std::min(count, token + r / group_.heads + 1 - first);
      ScoreRow(r, Row(token, r), visible);
    }
    PanelProduct<float> to_keys{.a = scratch_.ds,
                                .a_row = 1,
                                .a_k = kTile,
                                .b = scratch_.q,
                                .b_panel = kPanel,
                                .b_k = Dp_,
                                .c = scratch_.dkeys,
                                .c_row = Dp_,
                                .rows = count,
                                .panels = Dp_ / kPanel,
                                .K = rows,
                                .accumulate = true};
    Multiply(to_keys);
    PanelProduct<float> to_values = to_keys;
    to_values.a = scratch_.p, to_values.b = scratch_.dout, to_values.c = scratch_.dvalues;
    Multiply(to_values);
    Multiply(PanelProduct<float>{.a = scratch_.ds,
                                 .a_row = kTile,
                                 .b = scratch_.keys,
                                 .b_panel = kPanel,
                                 .b_k = Dp_,
                                 .c = scratch_.dq,
                                 .c_row = Dp_,
                                 .rows = rows,
                                 .panels = Dp_ / kPanel,
                                 .K = count,
                                 .accumulate = first > 0});
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(scratch_.dq + r * Dp_, D_, At(args_.dq, Row(token, r), Head(r) * D_));
    }
  }

  // Turns row r of `p` from products q.k into probabilities and of `ds` from products
  // dout.v into gradients; keys that the query does not see get zeros.
  void ScoreRow(int64_t r, int64_t row, int64_t visible) {
    const PanelTag d;
    float* const p = scratch_.p + r * kTile;
    float* const ds = scratch_.ds + r * kTile;
    const auto lse = hn::Set(d, *At(args_.lse_HT, Head(r), row));
    const auto delta = hn::Set(d, *At(delta_, row, Head(r)));
    const auto scale = hn::Set(d, args_.scale);
    for (int64_t j = 0; j < kTile; j += kLanes) {
      const auto mask = hn::FirstN(d, std::clamp<int64_t>(visible - j, 0, kLanes));
      const auto exponent = hn::MulSub(hn::LoadU(d, p + j), scale, lse);
      const auto probability = hn::IfThenElseZero(mask, Exp(d, exponent));
      const auto gradient =
          hn::Mul(hn::Mul(hn::Sub(hn::LoadU(d, ds + j), delta), scale), probability);
      hn::StoreU(probability, d, p + j);
      hn::StoreU(hn::IfThenElseZero(mask, gradient), d, ds + j);
    }
  }

  const AttentionBackwardArgs& args_;
  const TensorView& delta_;
  const HeadGroup group_;
  const int64_t D_, Dp_;
  const BackwardScratch scratch_;
  int64_t begin_ = 0, kv_head_ = 0;
};

// delta[t, h] = dout[t, h] . out[t, h] for rows [begin, end).
void DeltaRange(const cpu::AttentionBackwardTask& task, int64_t begin, int64_t end) {
  const AttentionBackwardArgs& args = task.args;
  const PanelTag d;
  const int64_t D = args.head_dim;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t h = 0; h < args.heads; ++h) {
      const float* out = args.out.ptr<float>() + t * args.out.strides[0] + h * D;
      const float* dout = args.dout.ptr<float>() + t * args.dout.strides[0] + h * D;
      auto sum = hn::Zero(d);
      int64_t i = 0;
      for (; i + kLanes <= D; i += kLanes) {
        sum = hn::MulAdd(hn::LoadU(d, out + i), hn::LoadU(d, dout + i), sum);
      }
      float total = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; i < D; ++i) total += out[i] * dout[i];
      task.delta_TH.ptr<float>()[t * args.heads + h] = total;
    }
  }
}

// Takes items until none is left: the KV heads of sequence 0, of sequence 1, ...
void BackwardWorker(const cpu::AttentionBackwardTask& task, float* scratch, int64_t items,
                    std::atomic<int64_t>& next) {
  const int32_t* starts = task.args.q_starts.ptr<int32_t>();
  HeadBackward backward(task, scratch);
  for (int64_t item = next++; item < items; item = next++) {
    const int64_t s = item / task.args.kv_heads;
    backward.Run(starts[s], starts[s + 1], item % task.args.kv_heads);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
HWY_EXPORT(DeltaRange);
HWY_EXPORT(BackwardWorker);

namespace cpu {

Shape AttentionBackwardScratch(const AttentionBackwardArgs& args, const Threads& threads) {
  const int64_t rows = HeadGroup::Of(args.heads, args.kv_heads).rows();
  return {threads.count(), BackwardScratch::Floats(rows, PanelColumns(args.head_dim))};
}

void AttentionBackward(const AttentionBackwardTask& task, Threads& threads) {
  constexpr int64_t kRowsPerRange = 16;
  threads.ParallelFor(task.args.q.dim(0), kRowsPerRange, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DeltaRange)(task, begin, end);
  });
  const int64_t items = (task.args.q_starts.dim(0) - 1) * task.args.kv_heads;
  ShareItems(threads, items, [&](int64_t slot, std::atomic<int64_t>& next) {
    float* const scratch = task.scratch.ptr<float>() + slot * task.scratch.strides[0];
    HWY_DYNAMIC_DISPATCH(BackwardWorker)(task, scratch, items, next);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
