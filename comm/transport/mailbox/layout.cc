#include "plinth/comm/transport/mailbox/layout.h"

#include <algorithm>
#include <bit>
#include <new>

#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kMostRingBytes = int64_t{512} << 10;
constexpr int64_t kLeastRingBytes = int64_t{4} << 10;
constexpr int64_t kRingBudget = int64_t{32} << 20;
constexpr int64_t kMostStagingBytes = int64_t{1} << 20;
constexpr int64_t kLeastStagingBytes = int64_t{64} << 10;
constexpr int64_t kStagingBudget = int64_t{16} << 20;

int64_t FairShare(int64_t budget, int64_t among, int64_t least, int64_t most) {
  const auto fair = static_cast<uint64_t>(budget / std::max<int64_t>(1, among));
  return std::clamp(static_cast<int64_t>(std::bit_floor(fair)), least, most);
}

int64_t Pages(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Where each part begins, from the start of the block.
struct Offsets {
  int64_t cells, counters, notes, ends, rings, staging, total;

  explicit Offsets(const MailboxSizes& sizes) {
    const int64_t ranks = sizes.ranks;
    cells = static_cast<int64_t>(sizeof(GroupCell));
    counters = cells + static_cast<int64_t>(sizeof(RankCell)) * ranks;
    notes = counters + static_cast<int64_t>(sizeof(Counter)) * ranks * SharedSpace::kCounters;
    ends = notes + static_cast<int64_t>(sizeof(NoteSlot)) * ranks * 2;
    rings = Pages(ends + static_cast<int64_t>(sizeof(RingEnds)) * ranks * ranks);
    staging = Pages(rings + sizes.ring_bytes * ranks * (ranks - 1));
    total = staging + sizes.staging_bytes * ranks;
  }
};

}  // namespace

MailboxSizes MailboxSizes::Default(int ranks) {
  const int64_t pairs = static_cast<int64_t>(ranks) * (ranks - 1);
  return {ranks, FairShare(kRingBudget, pairs, kLeastRingBytes, kMostRingBytes),
          FairShare(kStagingBudget, ranks, kLeastStagingBytes, kMostStagingBytes)};
}

int64_t MailboxSizes::TotalBytes() const { return Offsets(*this).total; }

MailboxView::MailboxView(std::byte* block, const MailboxSizes& sizes) : sizes_(sizes) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(block) % kPageBytes, 0u);
  CHECK(std::has_single_bit(static_cast<uint64_t>(sizes.ring_bytes))) << sizes.ring_bytes;
  CHECK_EQ(sizes.staging_bytes % kPageBytes, 0);
  const Offsets at(sizes);
  group_ = reinterpret_cast<GroupCell*>(block);
  cells_ = reinterpret_cast<RankCell*>(block + at.cells);
  counters_ = reinterpret_cast<Counter*>(block + at.counters);
  notes_ = reinterpret_cast<NoteSlot*>(block + at.notes);
  ends_ = reinterpret_cast<RingEnds*>(block + at.ends);
  rings_ = block + at.rings;
  staging_ = block + at.staging;
}

void MailboxView::Format() const {
  new (group_) GroupCell{};
  for (int rank = 0; rank < size(); ++rank) {
    new (&cell(rank)) RankCell{};
    for (int which = 0; which < SharedSpace::kCounters; ++which) {
      new (&counter(rank, which)) Counter{};
    }
    for (const uint32_t parity : {0, 1}) {
      NoteSlot* slot = new (&note(rank, parity)) NoteSlot;
      slot->sequence.store(0);
    }
    for (int peer = 0; peer < size(); ++peer) new (&ends(rank, peer)) RingEnds{};
  }
}

}  // namespace plinth::comm
