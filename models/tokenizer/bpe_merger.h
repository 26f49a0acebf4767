// Byte-pair merging of one piece: from bytes to the ids that the merge table prescribes.
//
// Repeatedly joins the adjacent pair of least rank, leftmost first, until none is in the table.
// Short pieces are scanned, O(n^2) with a tiny constant; long ones use a heap, O(n log n), so a
// megabyte without a space is no attack. Results of short pieces are cached, within a bound.
//
// Threads: Encode is safe from any number of threads; a contended cache shard is skipped, not
// waited for.
#ifndef PLINTH_MODELS_TOKENIZER_BPE_MERGER_H_
#define PLINTH_MODELS_TOKENIZER_BPE_MERGER_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plinth::models {

// `left` followed by `right` becomes `result`; the rank is the position in the table.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t result;
};

class BpeMerger {
 public:
  // byte_ids[b] is the id of the single byte b. Pairs of `merges` must be distinct.
  BpeMerger(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges);

  // Appends the ids of `piece` to `ids`.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

  // Pieces up to this length are scanned and cached.
  static constexpr size_t kShortPieceBytes = 48;
  // Together the shards keep at most this many pieces; a full shard starts anew.
  static constexpr size_t kCachedPieces = 1 << 16;

 private:
  struct RankedMerge {
    int32_t rank;
    int32_t result;
  };
  struct Shard {
    std::mutex mutex;
    absl::flat_hash_map<std::string, std::vector<int32_t>> pieces;  // guarded by mutex
  };
  static constexpr size_t kShards = 16;

  const RankedMerge* Find(int32_t left, int32_t right) const;
  void ScanShort(std::string_view piece, std::vector<int32_t>& ids) const;
  void MergeLong(std::string_view piece, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  absl::flat_hash_map<uint64_t, RankedMerge> merges_;
  mutable std::array<Shard, kShards> cache_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_BPE_MERGER_H_
