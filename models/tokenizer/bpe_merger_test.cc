#include "plinth/models/tokenizer/bpe_merger.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace plinth::models {
namespace {

std::array<int32_t, 256> IdentityBytes() {
  std::array<int32_t, 256> ids;
  for (int i = 0; i < 256; ++i) ids[i] = i;
  return ids;
}

// The definition: as long as any adjacent pair is in the table, join the one of least rank,
// leftmost among equals.
std::vector<int32_t> Reference(std::string_view piece, const std::vector<Merge>& merges) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_rank = merges.size(), best_at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
          best_rank = rank;
          best_at = i;
        }
      }
    }
    if (best_rank == merges.size()) return ids;
    ids[best_at] = merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

// Random tables, also such as no training would give: ranks need not follow the order in which
// tokens can be built.
std::vector<Merge> RandomMerges(std::mt19937& rng, int count) {
  std::vector<int32_t> symbols = {'a', 'b', 'c'};
  std::set<std::pair<int32_t, int32_t>> seen;
  std::vector<Merge> merges;
  for (int i = 0; i < count; ++i) {
    const int32_t left = symbols[rng() % symbols.size()], right = symbols[rng() % symbols.size()];
    if (!seen.emplace(left, right).second) continue;
    merges.push_back({left, right, 256 + static_cast<int32_t>(merges.size())});
    symbols.push_back(merges.back().result);
  }
  std::shuffle(merges.begin(), merges.end(), rng);
  return merges;
}

std::string RandomPiece(std::mt19937& rng, size_t most) {
  std::string piece(1 + rng() % most, ' ');
  for (char& c : piece) c = static_cast<char>('a' + rng() % 3);
  return piece;
}

TEST(BpeMerger, EqualsTheDefinition) {
  std::mt19937 rng(5);
  for (int round = 0; round < 40; ++round) {
    const std::vector<Merge> merges = RandomMerges(rng, 3 + round);
    const BpeMerger merger(IdentityBytes(), merges);
    for (int i = 0; i < 30; ++i) {
      // Lengths on both sides of the border between the two algorithms.
      const std::string piece = RandomPiece(rng, 3 * BpeMerger::kShortPieceBytes);
      std::vector<int32_t> first, cached;
      merger.Encode(piece, first);
      merger.Encode(piece, cached);
      ASSERT_EQ(first, Reference(piece, merges)) << piece;
      ASSERT_EQ(cached, first) << piece;
    }
  }
}

TEST(BpeMerger, AppendsAndTakesSingleBytes) {
  const BpeMerger merger(IdentityBytes(), std::vector<Merge>{{'a', 'b', 300}});
  std::vector<int32_t> ids = {7};
  merger.Encode("x", ids);
  merger.Encode("ab", ids);
  merger.Encode("aab", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{7, 'x', 300, 'a', 300}));
}

TEST(BpeMerger, LongPieceIsNotQuadratic) {
  std::vector<Merge> merges;
  for (int32_t i = 0, id = 'a'; i < 12; id = 256 + i++) merges.push_back({id, id, 256 + i});
  const BpeMerger merger(IdentityBytes(), merges);
  std::vector<int32_t> ids;
  merger.Encode(std::string(1 << 20, 'a'), ids);  // quadratic: an hour
  EXPECT_EQ(ids, std::vector<int32_t>((1 << 20) >> 12, 267));
}

TEST(BpeMerger, ThreadsAgreeWhileTheCacheOverflows) {
  std::mt19937 rng(6);
  const std::vector<Merge> merges = RandomMerges(rng, 30);
  const BpeMerger shared(IdentityBytes(), merges);
  constexpr size_t kPieces = 2 * BpeMerger::kCachedPieces / 4;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 own(static_cast<unsigned>(100 + t / 2));  // two threads each see equal pieces
      for (size_t i = 0; i < kPieces; ++i) {
        const std::string piece = RandomPiece(own, 24);
        std::vector<int32_t> ids, again;
        shared.Encode(piece, ids);
        if (i % 64 == 0 && ids != Reference(piece, merges)) ++wrong[t];
        shared.Encode(piece, again);
        if (ids != again) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace plinth::models
