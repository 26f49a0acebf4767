#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "plinth/hardware/kernels/attention/blocks.h"
#include "plinth/hardware/kernels/attention/cpu.h"

// Machines without AVX2 run the scalar code: two targets fewer to compile.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/attention/cpu_forward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plinth/hardware/kernels/attention/tile.h"
#include "plinth/hardware/kernels/panel_product.h"
#include "plinth/hardware/kernels/vector_math.h"

#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_FORWARD_ONCE_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_CPU_FORWARD_ONCE_
namespace plinth {

// A thread's temporaries for one block; all rows are whole panels.
struct ForwardScratch {
  float* q;       // [rows, D]      scaled
  float* keys;    // [kAttentionTile, Dp]
  float* turned;  // [Dp, kAttentionTile]
  float* values;  // [kAttentionTile, Dp]
  float* scores;  // [rows, kAttentionTile]  then probabilities
  float* sums;    // [rows, Dp]     of values, weighted
  float* top;     // [rows]         greatest score so far
  float* weight;  // [rows]         sum of exp(score - top)

  ForwardScratch(float* base, int64_t rows, int64_t Dp) {
    const auto take = [&base](int64_t n) { return std::exchange(base, base + n); };
    q = take(rows * Dp), keys = take(kAttentionTile * Dp), turned = take(Dp * kAttentionTile);
    values = take(kAttentionTile * Dp), scores = take(rows * kAttentionTile),
    sums = take(rows * Dp);
    top = take(rows), weight = take(rows);
  }
  static int64_t Floats(int64_t rows, int64_t Dp) {
    return rows * (2 * Dp + kAttentionTile + 2) + 3 * kAttentionTile * Dp;
  }
};

// Consecutive queries of one sequence, for the heads of some KV heads.
struct QueryBlock {
  int64_t sequence;
  int64_t kv_head, kv_heads;  // the first, and how many
  int64_t row;                // of the first query, in q
  int64_t position;           // of the first query, in its sequence
  int64_t tokens;
};

}  // namespace plinth
#endif

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

constexpr int64_t kTile = kAttentionTile;
constexpr int64_t kLanes = kPanel / kPanelVecs;

void ScaleRow(const float* from, float factor, int64_t n, float* to) {
  const PanelTag d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, from + i), hn::Set(d, factor)), d, to + i);
  }
  for (; i < n; ++i) to[i] = from[i] * factor;  // one rounding, the same either way
}

// One row of scores becomes probabilities, relative to the greatest score so far; what was
// summed relative to a smaller one is scaled down. Only the first `keys` scores count.
void SoftmaxRow(float* scores, int64_t keys, float& top, float& weight, float* sums, int64_t Dp) {
  const PanelTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto greatest = lowest;
  for (int64_t j = 0; j < keys; j += kLanes) {
    auto score = hn::LoadU(d, scores + j);
    if (j + kLanes > keys) score = hn::IfThenElse(hn::FirstN(d, keys - j), score, lowest);
    hn::StoreU(score, d, scores + j);
    greatest = hn::Max(greatest, score);
  }
  const float new_top = std::max(top, hn::GetLane(hn::MaxOfLanes(d, greatest)));
  if (new_top != top) {  // else the factor is exactly 1
    if (weight != 0) {   // else nothing was summed so far
      const float factor = hn::GetLane(Exp(d, hn::Set(d, top - new_top)));
      ScaleRow(sums, factor, Dp, sums);
      weight *= factor;
    }
    top = new_top;
  }
  auto total = hn::Zero(d);
  for (int64_t j = 0; j < keys; j += kLanes) {
    const auto p = Exp(d, hn::Sub(hn::LoadU(d, scores + j), hn::Set(d, top)));
    hn::StoreU(p, d, scores + j);
    total = hn::Add(total, p);
  }
  weight += hn::GetLane(hn::SumOfLanes(d, total));
}

class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& args, float* scratch)
      : args_(args),
        group_(HeadGroup::Of(args.heads, args.kv_heads)),
        D_(args.head_dim),
        Dp_(PanelColumns(args.head_dim)),
        all_scratch_(scratch, group_.rows(), Dp_),
        scratch_(all_scratch_) {}

  void Run(const QueryBlock& block) {
    block_ = block;
    pages_ = nullptr;
    if (args_.pages.data != nullptr) {
      pages_ = args_.pages.ptr<int32_t>() + block.sequence * args_.pages.strides[0];
    }
    for (int64_t i = 0; i < block.kv_heads; ++i) {
      Select(i);
      Start();
    }
    const int64_t keys = block.position + block.tokens;
    for (int64_t first = 0; first < keys; first += kTile) {
      const int64_t count = std::min(kTile, keys - first);
      for (int64_t j = 0; j < count; ++j) key_rows_[j] = KeyRow(first + j);
      if (block.kv_heads > 1) ReadAhead(count);
      for (int64_t i = 0; i < block.kv_heads; ++i) {
        Select(i);
        Tile(first, count);
      }
    }
    for (int64_t i = 0; i < block.kv_heads; ++i) {
      Select(i);
      Finish();
    }
  }

 private:
  // What follows works on the rows of the block's i-th KV head.
  void Select(int64_t i) {
    kv_head_ = block_.kv_head + i;
    scratch_ = all_scratch_;
    scratch_.q += i * rows() * D_, scratch_.scores += i * rows() * kTile;
    scratch_.sums += i * rows() * Dp_, scratch_.top += i * rows(), scratch_.weight += i * rows();
  }
  int64_t rows() const { return block_.tokens * group_.heads; }
  // Keys of the tile at `first` that row r may see: those up to its own position.
  int64_t VisibleKeys(int64_t r, int64_t first) const {
    return std::min(kTile, block_.position + r / group_.heads + 1 - first);
  }
  // Offset of row r in q and out.
  static int64_t Offset(const TensorView& view, int64_t row, int64_t column) {
    return row * view.strides[0] + column;
  }
  int64_t QueryColumn(int64_t r) const { return (kv_head_ * group_.heads + r % group_.heads) * D_; }

  void Start() {
    for (int64_t r = 0; r < rows(); ++r) {
      const float* q =
          args_.q.ptr<float>() + Offset(args_.q, block_.row + r / group_.heads, QueryColumn(r));
      ScaleRow(q, args_.scale, D_, scratch_.q + r * D_);
    }
    std::fill_n(scratch_.sums, rows() * Dp_, 0.0f);
    std::fill_n(scratch_.top, rows(), -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.weight, rows(), 0.0f);
  }

  // Row of k and v that holds the key at `position` of the sequence.
  int64_t KeyRow(int64_t position) const {
    if (pages_ == nullptr) return block_.row - block_.position + position;
    return pages_[position / args_.page_tokens] * args_.page_tokens + position % args_.page_tokens;
  }

  template <class E>
  void GatherTile(int64_t first, int64_t count) {
    const int64_t column = kv_head_ * D_;
    const auto key = [&](int64_t row) { return args_.k.ptr<E>() + Offset(args_.k, row, column); };
    const auto value = [&](int64_t row) { return args_.v.ptr<E>() + Offset(args_.v, row, column); };
    for (int64_t j = 0; j < count; ++j) {
      if (block_.kv_heads == 1 && first + j + kRowsAhead < block_.position + block_.tokens) {
        const int64_t ahead = KeyRow(first + j + kRowsAhead);
        PrefetchRow(key(ahead), D_);
        PrefetchRow(value(ahead), D_);
      }
      CopyRow(key(key_rows_[j]), D_, scratch_.keys + j * Dp_);
      CopyRow(value(key_rows_[j]), D_, scratch_.values + j * Dp_);
    }
    // Scores of the keys that fill up a panel are computed and never used.
    std::fill(scratch_.keys + count * Dp_, scratch_.keys + PanelColumns(count) * Dp_, 0.0f);
    Transpose(scratch_.keys, PanelColumns(count), D_, scratch_.turned);
  }

  // Loads a line of each 64 bytes of the tile's rows in the order they lie in memory: the
  // hardware then runs ahead into L2, where the heads find their parts.
  void ReadAhead(int64_t count) const {
    const int64_t size = DTypeSize(args_.k.dtype), bytes = block_.kv_heads * D_ * size;
    for (const TensorView* view : {&args_.k, &args_.v}) {
      for (int64_t j = 0; j < count; ++j) {
        const auto* row = static_cast<const volatile char*>(view->data) +
                          Offset(*view, key_rows_[j], block_.kv_head * D_) * size;
        for (int64_t i = 0; i < bytes; i += 64) static_cast<void>(row[i]);
      }
    }
  }

  void Tile(int64_t first, int64_t count) {
    if (args_.k.dtype == DType::kBf16) {
      GatherTile<uint16_t>(first, count);
    } else {
      GatherTile<float>(first, count);
    }
    // Rows of queries that stand before the tile see none of it.
    const int64_t begin = std::max<int64_t>(0, first - block_.position) * group_.heads;
    Multiply(PanelProduct<float>{.a = scratch_.q + begin * D_,
                                 .a_row = D_,
                                 .b = scratch_.turned,
                                 .b_panel = kPanel,
                                 .b_k = kTile,
                                 .c = scratch_.scores + begin * kTile,
                                 .c_row = kTile,
                                 .rows = rows() - begin,
                                 .panels = PanelColumns(count) / kPanel,
                                 .K = D_});
    for (int64_t r = begin; r < rows(); ++r) {
      SoftmaxRow(scratch_.scores + r * kTile, VisibleKeys(r, first), scratch_.top[r],
                 scratch_.weight[r], scratch_.sums + r * Dp_, Dp_);
    }
    // Adjacent rows add the values of the keys that all of them see together, and then each
    // row those that it sees besides: no row touches a value after its own position.
    constexpr int64_t kTogether = 8;
    for (int64_t r = begin; r < rows(); r += kTogether) {
      const int64_t end = std::min(r + kTogether, rows());
      const int64_t common = VisibleKeys(r, first);
      AddValues(r, end - r, 0, common);
      for (int64_t i = r; i < end; ++i) {
        const int64_t visible = VisibleKeys(i, first);
        if (visible > common) AddValues(i, 1, common, visible - common);
      }
    }
  }

  // sums[r] += probabilities[r, key..] . values[key..]
  void AddValues(int64_t row, int64_t rows, int64_t key, int64_t keys) {
    Multiply(PanelProduct<float>{.a = scratch_.scores + row * kTile + key,
                                 .a_row = kTile,
                                 .b = scratch_.values + key * Dp_,
                                 .b_panel = kPanel,
                                 .b_k = Dp_,
                                 .c = scratch_.sums + row * Dp_,
                                 .c_row = Dp_,
                                 .rows = rows,
                                 .panels = Dp_ / kPanel,
                                 .K = keys,
                                 .accumulate = true});
  }

  void Finish() {
    for (int64_t r = 0; r < rows(); ++r) {
      const int64_t row = block_.row + r / group_.heads;
      float* out = args_.out.ptr<float>() + Offset(args_.out, row, QueryColumn(r));
      ScaleRow(scratch_.sums + r * Dp_, 1.0f / scratch_.weight[r], D_, out);
      if (args_.lse_HT.data != nullptr) {
        const int64_t head = kv_head_ * group_.heads + r % group_.heads;
        args_.lse_HT.ptr<float>()[Offset(args_.lse_HT, head, row)] =
            scratch_.top[r] + std::log(scratch_.weight[r]);
      }
    }
  }

  const AttentionArgs& args_;
  const HeadGroup group_;
  const int64_t D_, Dp_;
  const ForwardScratch all_scratch_;
  ForwardScratch scratch_;  // of the selected KV head
  QueryBlock block_{};
  int64_t kv_head_ = 0;
  const int32_t* pages_ = nullptr;  // of the block's sequence
  int64_t key_rows_[kTile];         // of the tile's keys
};

// Takes items until none is left: the blocks of sequence 0 (each for all KV heads), of 1, ..
void ForwardWorker(const AttentionArgs& args, const ForwardPlan& plan, float* scratch,
                   int64_t items, std::atomic<int64_t>& next) {
  const int32_t* starts = args.q_starts.ptr<int32_t>();
  const auto length = [&](int64_t s) -> int64_t { return starts[s + 1] - starts[s]; };
  ForwardBlock forward(args, scratch);
  GroupCursor cursor;
  for (int64_t item = next++; item < items; item = next++) {
    cursor.MoveTo(item, [&](int64_t s) { return plan.Items(length(s)); });
    const int64_t s = cursor.group(), within = item - cursor.first();
    const int64_t parts = plan.HeadParts(length(s)), part = within % parts;
    const int64_t token = within / parts * plan.group.tokens;
    const int64_t past = args.pages.data != nullptr ? args.past.ptr<int32_t>()[s] : 0;
    const int64_t kv_head = plan.kv_heads * part / parts;
    forward.Run({.sequence = s,
                 .kv_head = kv_head,
                 .kv_heads = plan.kv_heads * (part + 1) / parts - kv_head,
                 .row = starts[s] + token,
                 .position = past + token,
                 .tokens = std::min(plan.group.tokens, length(s) - token)});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
HWY_EXPORT(ForwardWorker);

namespace cpu {

Shape AttentionScratch(const AttentionArgs& args, const Threads& threads) {
  const int64_t rows = HeadGroup::Of(args.heads, args.kv_heads).rows();
  return {threads.count(), ForwardScratch::Floats(rows, PanelColumns(args.head_dim))};
}

void Attention(const AttentionTask& task, Threads& threads) {
  const AttentionArgs& args = task.args;
  const int32_t* starts = args.q_starts.ptr<int32_t>();
  const int64_t S = args.q_starts.dim(0) - 1;
  ForwardPlan plan{HeadGroup::Of(args.heads, args.kv_heads), args.kv_heads, 1};
  CHECK_EQ(starts[0], 0) << " in attention: q_starts";
  CHECK_EQ(starts[S], args.q.dim(0)) << " in attention: end of q_starts";
  int64_t blocks = 0, items = 0;
  for (int64_t s = 0; s < S; ++s) {
    CHECK_LE(starts[s], starts[s + 1]) << " in attention: q_starts of sequence " << s;
    blocks += plan.group.Blocks(starts[s + 1] - starts[s]);
  }
  plan.most_together = std::max<int64_t>(1, blocks * args.kv_heads / threads.count());
  for (int64_t s = 0; s < S; ++s) items += plan.Items(starts[s + 1] - starts[s]);
  ShareItems(threads, items, [&](int64_t slot, std::atomic<int64_t>& next) {
    float* const scratch = task.scratch.ptr<float>() + slot * task.scratch.strides[0];
    HWY_DYNAMIC_DISPATCH(ForwardWorker)(args, plan, scratch, items, next);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
