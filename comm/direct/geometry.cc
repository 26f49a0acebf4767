#include "plinth/comm/direct/geometry.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

int64_t Sum(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}
int64_t Most(std::span<const int64_t> counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

// In elements.
class Shape {
 public:
  Shape(const CollectiveCall& call, int size)
      : call_(call), count_(call.print.count), size_(size) {}

  Take Between(int source, int taker) const {
    const int root = call_.print.root;
    switch (call_.print.op) {
      case OpKind::kAllReduce:
        return {0, 0, count_};
      case OpKind::kReduce:
        return {0, 0, taker == root ? count_ : 0};
      case OpKind::kReduceScatter:
        return {taker * count_, 0, count_};
      case OpKind::kReduceScatterV:
        return {SharesBefore(taker), 0, shares()[taker]};
      case OpKind::kAllGather:
        return {0, source * count_, count_};
      case OpKind::kAllGatherV:
        return {0, SharesBefore(source), shares()[source]};
      case OpKind::kBroadcast:
        return {0, 0, source == root ? count_ : 0};
      case OpKind::kGather:
        return {0, source * count_, taker == root ? count_ : 0};
      case OpKind::kScatter:
        return {taker * count_, 0, source == root ? count_ : 0};
      case OpKind::kAllToAll:
        return {taker * count_, source * count_, count_};
      case OpKind::kAllToAllV:
        return {Sum(Row(source).first(taker)), ReceivedBefore(source, taker), Row(source)[taker]};
      default:
        CHECK(false) << "not an operation that moves data";
        return {};
    }
  }

  int64_t Longest() const {
    switch (call_.print.op) {
      case OpKind::kReduceScatterV:
      case OpKind::kAllGatherV:
        return Most(shares());
      case OpKind::kAllToAllV:
        return Most(call_.pair_counts);
      default:
        return count_;
    }
  }

 private:
  std::span<const int64_t> shares() const { return call_.send_counts; }
  int64_t SharesBefore(int rank) const { return Sum(shares().first(rank)); }
  // What a rank sends, by receiver.
  std::span<const int64_t> Row(int source) const {
    return call_.pair_counts.subspan(static_cast<size_t>(source) * size_, size_);
  }
  int64_t ReceivedBefore(int source, int taker) const {
    int64_t sum = 0;
    for (int rank = 0; rank < source; ++rank) sum += Row(rank)[taker];
    return sum;
  }

  const CollectiveCall& call_;
  const int64_t count_;
  const int size_;
};

bool DiffersByTaker(OpKind op) {
  return op == OpKind::kReduceScatter || op == OpKind::kReduceScatterV || op == OpKind::kScatter ||
         op == OpKind::kAllToAll || op == OpKind::kAllToAllV;
}

Take InBytes(const Take& take, int64_t width) {
  return {take.from * width, take.to * width, take.bytes * width};
}

}  // namespace

Share ShareOf(int64_t bytes, int rank, int size) {
  constexpr int64_t kLineBytes = 64;
  const int64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  const int64_t each = (lines + size - 1) / size * kLineBytes;
  const int64_t begin = std::min(bytes, rank * each);
  return {begin, std::min(each, bytes - begin)};
}

bool Combines(OpKind op) {
  return op == OpKind::kAllReduce || op == OpKind::kReduce || op == OpKind::kReduceScatter ||
         op == OpKind::kReduceScatterV;
}

int64_t LongestBytes(const CollectiveCall& call) {
  return Shape(call, 0).Longest() * DTypeSize(call.print.dtype);
}

void FillGeometry(const CollectiveCall& call, int rank, int size, Geometry& geometry) {
  const Shape shape(call, size);
  const int64_t width = DTypeSize(call.print.dtype);
  geometry.combines = Combines(call.print.op);
  geometry.same_for_all = !DiffersByTaker(call.print.op);
  geometry.longest = LongestBytes(call);
  geometry.takes.resize(size);
  geometry.gives.resize(size);
  for (int peer = 0; peer < size; ++peer) {
    geometry.takes[peer] = InBytes(shape.Between(peer, rank), width);
    geometry.gives[peer] = InBytes(shape.Between(rank, peer), width);
  }
}

int64_t MostInputBytes(const CollectiveCall& call, int size) {
  const int64_t width = DTypeSize(call.print.dtype);
  switch (call.print.op) {
    case OpKind::kReduceScatter:
    case OpKind::kScatter:
    case OpKind::kAllToAll:
      return call.print.count * size * width;
    case OpKind::kReduceScatterV:
      return Sum(call.send_counts) * width;
    case OpKind::kAllGatherV:
    case OpKind::kAllToAllV:
      return -1;
    default:
      return call.print.count * width;
  }
}

}  // namespace plinth::comm
