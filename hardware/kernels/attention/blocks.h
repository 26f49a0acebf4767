// How attention on the host is cut into pieces of work.
#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_BLOCKS_H_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_BLOCKS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "plinth/hardware/threading/threads.h"

namespace plinth {

// Query rows that share each tile of keys while it lies in L1.
inline constexpr int64_t kQueryRows = 64;

// Rows of temporaries are whole panels of 16 columns.
constexpr int64_t PanelColumns(int64_t n) { return (n + 15) / 16 * 16; }

// The query heads that share one KV head, and the tokens whose rows make a block. A
// block's rows are its tokens in order, each with all its heads.
struct HeadGroup {
  int64_t heads;
  int64_t tokens;
  int64_t rows() const { return heads * tokens; }

  static HeadGroup Of(int64_t heads, int64_t kv_heads) {
    const int64_t group = heads / kv_heads;
    return {group, std::max<int64_t>(1, kQueryRows / group)};
  }
  int64_t Blocks(int64_t sequence_tokens) const { return (sequence_tokens + tokens - 1) / tokens; }
};

// A block that has few queries takes several KV heads, up to the rows of a full one: their
// keys lie side by side, and memory is read in long stretches. How many does not change a
// result.
struct ForwardPlan {
  HeadGroup group;
  int64_t kv_heads;
  int64_t most_together;  // leaves work for every thread

  int64_t Together(int64_t sequence_tokens) const {
    const int64_t rows = group.heads * std::clamp<int64_t>(sequence_tokens, 1, group.tokens);
    return std::clamp<int64_t>(group.rows() / rows, 1, std::min(kv_heads, most_together));
  }
  // Pieces that the KV heads are cut into.
  int64_t HeadParts(int64_t sequence_tokens) const {
    const int64_t together = Together(sequence_tokens);
    return (kv_heads + together - 1) / together;
  }
  int64_t Items(int64_t sequence_tokens) const {
    return group.Blocks(sequence_tokens) * HeadParts(sequence_tokens);
  }
};

// Calls work(slot, next) on each thread; `next` hands out items to whoever is free, since
// they differ in cost. Slots are below threads.count(), each in use once at a time.
template <typename Work>
void ShareItems(Threads& threads, int64_t items, const Work& work) {
  std::atomic<int64_t> next{0};
  threads.ParallelFor(std::min<int64_t>(items, threads.count()), 1, [&](int64_t slot, int64_t end) {
    for (; slot < end; ++slot) work(slot, next);
  });
}

// Finds the group of an item among consecutive groups of known sizes. Items are asked for
// in rising order, so that a walk over all costs no more than the number of groups.
class GroupCursor {
 public:
  template <typename Size>
  void MoveTo(int64_t item, const Size& size) {
    for (; item >= first_ + size(group_); ++group_) first_ += size(group_);
  }
  int64_t group() const { return group_; }
  int64_t first() const { return first_; }  // item of the group

 private:
  int64_t group_ = 0, first_ = 0;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_BLOCKS_H_
