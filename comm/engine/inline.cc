#include "plinth/comm/engine/inline.h"

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "plinth/comm/executor/block_layout.h"
#include "plinth/comm/reduce/reduce.h"

namespace plinth::comm {
namespace {

void Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

// `offset` elements into each contribution.
void ReduceAll(const CollectiveCall& call, std::span<const std::byte* const> contributions,
               int64_t offset) {
  if (call.out.count == 0) return;
  if (contributions.size() == 1) {
    return Copy(static_cast<std::byte*>(call.out.data),
                contributions[0] + offset * DTypeSize(call.print.dtype), call.out.bytes());
  }
  absl::InlinedVector<ReduceSource, 16> sources;
  for (const std::byte* data : contributions) {
    sources.push_back({data + offset * DTypeSize(call.print.dtype), false});
  }
  ReduceFinish(call.print.reduce, call.print.dtype, sources, call.out.count, call.out.data,
               static_cast<int>(contributions.size()));
}

}  // namespace

int64_t ContributionBytes(const CollectiveCall& call, int rank) {
  const bool one_gives = call.print.op == OpKind::kBroadcast || call.print.op == OpKind::kScatter;
  return one_gives && rank != call.print.root ? 0 : call.in.bytes();
}

int64_t RootContributionBytes(const CollectiveCall& call, int size) {
  const int64_t bytes = call.print.count * DTypeSize(call.print.dtype);
  if (call.print.op == OpKind::kBroadcast) return bytes;
  return call.print.op == OpKind::kScatter ? bytes * size : 0;
}

void FinishInline(const CollectiveCall& call, int rank,
                  std::span<const std::byte* const> contributions) {
  const int size = static_cast<int>(contributions.size());
  const BlockLayout layout(call, size, 1);
  auto* out = static_cast<std::byte*>(call.out.data);
  const int64_t width = DTypeSize(call.print.dtype);
  switch (call.print.op) {
    case OpKind::kAllReduce:
      return ReduceAll(call, contributions, 0);
    case OpKind::kReduce:
      if (rank == call.print.root) ReduceAll(call, contributions, 0);
      return;
    case OpKind::kReduceScatter:
    case OpKind::kReduceScatterV:
      return ReduceAll(call, contributions, layout.InputOffset(rank, rank));
    case OpKind::kGather:
      if (rank != call.print.root) return;
      [[fallthrough]];
    case OpKind::kAllGather:
    case OpKind::kAllGatherV:
    case OpKind::kSplit:  // whose ranks tell each other where they want to be
      for (int from = 0; from < size; ++from) {
        Copy(out + layout.OutputOffset(rank, from) * width, contributions[from],
             layout.Count(from) * width);
      }
      return;
    case OpKind::kBroadcast:
      return Copy(out, contributions[call.print.root], call.out.bytes());
    case OpKind::kScatter:
      return Copy(out, contributions[call.print.root] + layout.InputOffset(rank, rank) * width,
                  call.out.bytes());
    case OpKind::kAllToAll:
    case OpKind::kAllToAllV:
      for (int from = 0; from < size; ++from) {
        const int block = from * size + rank;
        Copy(out + layout.OutputOffset(rank, block) * width,
             contributions[from] + layout.InputOffset(from, block) * width,
             layout.Count(block) * width);
      }
      return;
    default:
      return;
  }
}

}  // namespace plinth::comm
