#include "plinth/models/tokenizer/bpe_merger.h"

#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "plinth/hardware/base/check.h"

namespace plinth::models {
namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

uint64_t Key(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

}  // namespace

BpeMerger::BpeMerger(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges)
    : byte_ids_(byte_ids) {
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    CHECK(merges_
              .emplace(Key(merge.left, merge.right),
                       RankedMerge{static_cast<int32_t>(rank), merge.result})
              .second);
  }
}

const BpeMerger::RankedMerge* BpeMerger::Find(int32_t left, int32_t right) const {
  const auto it = merges_.find(Key(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void BpeMerger::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() == 1) {
    ids.push_back(byte_ids_[static_cast<uint8_t>(piece[0])]);
    return;
  }
  if (piece.size() > kShortPieceBytes) {
    MergeLong(piece, ids);
    return;
  }
  const absl::string_view key(piece.data(), piece.size());
  Shard& shard = cache_[std::hash<std::string_view>()(piece) % kShards];
  {
    std::unique_lock<std::mutex> lock(shard.mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      const auto it = shard.pieces.find(key);
      if (it != shard.pieces.end()) {
        ids.insert(ids.end(), it->second.begin(), it->second.end());
        return;
      }
    }
  }
  const size_t before = ids.size();
  ScanShort(piece, ids);
  std::unique_lock<std::mutex> lock(shard.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (shard.pieces.size() >= kCachedPieces / kShards) shard.pieces.clear();
  shard.pieces.try_emplace(key, ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
}

void BpeMerger::ScanShort(std::string_view piece, std::vector<int32_t>& ids) const {
  // best[i] is the merge of symbols i and i + 1.
  std::array<int32_t, kShortPieceBytes> symbols;
  std::array<RankedMerge, kShortPieceBytes> best;
  size_t n = piece.size();
  for (size_t i = 0; i < n; ++i) symbols[i] = byte_ids_[static_cast<uint8_t>(piece[i])];
  const auto refresh = [&](size_t i) {
    const RankedMerge* const merge = Find(symbols[i], symbols[i + 1]);
    best[i] = merge == nullptr ? RankedMerge{kNoRank, 0} : *merge;
  };
  for (size_t i = 0; i + 1 < n; ++i) refresh(i);
  while (n > 1) {
    size_t least = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (best[i].rank < best[least].rank) least = i;
    }
    if (best[least].rank == kNoRank) break;
    symbols[least] = best[least].result;
    for (size_t i = least + 1; i + 1 < n; ++i) {
      symbols[i] = symbols[i + 1];
      best[i] = best[i + 1];
    }
    --n;
    if (least > 0) refresh(least - 1);
    if (least + 1 < n) refresh(least);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(n));
}

void BpeMerger::MergeLong(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t id;  // -1 once joined to the one before it
    int64_t previous;
    int64_t next;
  };
  struct Candidate {
    int32_t rank;
    int32_t result;
    int64_t at;
    int32_t left;
    int32_t right;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  const int64_t n = static_cast<int64_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (int64_t i = 0; i < n; ++i) {
    symbols[i] = {byte_ids_[static_cast<uint8_t>(piece[i])], i - 1, i + 1 < n ? i + 1 : -1};
  }
  std::vector<Candidate> first;
  const auto candidate_at = [&](int64_t i, const auto& add) {
    if (i < 0 || symbols[i].next < 0) return;
    const int32_t left = symbols[i].id, right = symbols[symbols[i].next].id;
    if (const RankedMerge* const merge = Find(left, right); merge != nullptr) {
      add(Candidate{merge->rank, merge->result, i, left, right});
    }
  };
  for (int64_t i = 0; i < n; ++i) {
    candidate_at(i, [&](const Candidate& c) { first.push_back(c); });
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(),
                                                                               std::move(first));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& symbol = symbols[top.at];
    // A neighbour may have been joined since this candidate was found.
    if (symbol.id != top.left || symbol.next < 0 || symbols[symbol.next].id != top.right) continue;
    Symbol& joined = symbols[symbol.next];
    symbol.id = top.result;
    symbol.next = joined.next;
    joined.id = -1;
    if (symbol.next >= 0) symbols[symbol.next].previous = top.at;
    const auto push = [&](const Candidate& c) { queue.push(c); };
    candidate_at(symbol.previous, push);
    candidate_at(top.at, push);
  }
  for (int64_t i = 0; i >= 0; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace plinth::models
