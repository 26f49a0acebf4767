#include "plinth/comm/executor/block_layout.h"

#include <algorithm>
#include <numeric>

#include "plinth/comm/program/slice.h"

namespace plinth::comm {

int64_t BlockLayout::VectorBegin(int block) const {
  return PartOf({0, call_.print.count}, blocks_, block).begin;
}

int64_t BlockLayout::SharesBefore(int block) const {
  const auto& counts = call_.send_counts;
  return std::accumulate(counts.begin(), counts.begin() + block, int64_t{0});
}

int64_t BlockLayout::Count(int block) const {
  switch (call_.print.op) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kBroadcast:
      return PartOf({0, call_.print.count}, blocks_, block).count;
    case OpKind::kReduceScatterV:
    case OpKind::kAllGatherV:
      return call_.send_counts[block];
    case OpKind::kAllToAllV:
      return call_.pair_counts[block];
    default:
      return call_.print.count;
  }
}

int64_t BlockLayout::MostCount() const {
  switch (call_.print.op) {
    case OpKind::kReduceScatterV:
    case OpKind::kAllGatherV:
      return *std::max_element(call_.send_counts.begin(), call_.send_counts.end());
    case OpKind::kAllToAllV:
      return *std::max_element(call_.pair_counts.begin(), call_.pair_counts.end());
    default:
      return Count(0);  // the longer parts of a vector come first
  }
}

int64_t BlockLayout::InputOffset(int rank, int block) const {
  switch (call_.print.op) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kBroadcast:
      return VectorBegin(block);
    case OpKind::kReduceScatter:
    case OpKind::kScatter:
      return block * call_.print.count;
    case OpKind::kReduceScatterV:
      return SharesBefore(block);
    case OpKind::kAllToAll:
      return block % size_ * call_.print.count;
    case OpKind::kAllToAllV: {
      const int64_t* row = call_.pair_counts.data() + int64_t{rank} * size_;
      return std::accumulate(row, row + block % size_, int64_t{0});
    }
    default:
      return 0;
  }
}

int64_t BlockLayout::OutputOffset(int rank, int block) const {
  switch (call_.print.op) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kBroadcast:
      return VectorBegin(block);
    case OpKind::kAllGather:
    case OpKind::kGather:
    case OpKind::kSplit:
      return block * call_.print.count;
    case OpKind::kAllGatherV:
      return SharesBefore(block);
    case OpKind::kAllToAll:
      return block / size_ * call_.print.count;
    case OpKind::kAllToAllV: {
      int64_t before = 0;
      for (int from = 0; from < block / size_; ++from) {
        before += call_.pair_counts[int64_t{from} * size_ + rank];
      }
      return before;
    }
    default:
      return 0;
  }
}

}  // namespace plinth::comm
