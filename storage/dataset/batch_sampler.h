// Which tokens a training step sees: a function of seed and global position, never of ranks.
//
// The stream is cut into windows of T+1 tokens, T apart, so that each token but the first is
// predicted once; a rest shorter than T is left out. Epoch e visits every window exactly
// once, in an order chosen by (seed, e). Global position p counts samples since the start of
// training: sample p is window order_e(i) with e = p / windows, i = p % windows. A batch of B
// at position p is the samples [p, p + B), and may cross into the next epoch.
#ifndef PLINTH_STORAGE_DATASET_BATCH_SAMPLER_H_
#define PLINTH_STORAGE_DATASET_BATCH_SAMPLER_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/dataset/cursor.h"
#include "plinth/storage/dataset/token_dataset.h"

namespace plinth::storage {

// A range of samples of one global batch.
struct SampleRange {
  int64_t first;  // global position
  int64_t count;
};

// The share of rank `rank` of `world` in the batch [position, position + batch). Shares of
// all ranks, in rank order, are exactly the batch; sizes differ by at most one, so any world
// size works at any moment. Requires 0 <= rank < world, batch >= 0.
SampleRange RankShare(int64_t position, int64_t batch, int rank, int world);

// Threads  re-entrant.   Owns  nothing: the dataset must outlive it.
class BatchSampler {
 public:
  // kInvalidArgument when the dataset has fewer than sequence_length + 1 tokens, or
  // sequence_length < 1.
  static absl::StatusOr<BatchSampler> Create(const TokenDataset* dataset, int64_t sequence_length,
                                             uint64_t seed);

  int64_t windows() const { return windows_; }  // samples per epoch
  int64_t sequence_length() const { return sequence_length_; }

  // First token of the sample at a global position >= 0.
  int64_t FirstToken(int64_t position) const;

  // Fills out[count][sequence_length + 1], row-major, with a range of samples. Inputs of a
  // sample are its first T tokens, targets its last T. CHECKs the size of `out`.
  // Errors: those of TokenDataset::Copy.
  absl::Status Read(const SampleRange& range, std::span<int32_t> out) const;

  // The cursor of a position, and back. Position fails with kFailedPrecondition for a cursor
  // of other data or another sequence length (it would mean other samples), and with
  // kInvalidArgument for one that no position has. A default cursor is the start.
  DataCursor CursorAt(int64_t position) const;
  absl::StatusOr<int64_t> PositionOf(const DataCursor& cursor) const;

 private:
  BatchSampler(const TokenDataset* dataset, int64_t sequence_length, uint64_t seed, int64_t windows)
      : dataset_(dataset), sequence_length_(sequence_length), seed_(seed), windows_(windows) {}

  const TokenDataset* dataset_;
  int64_t sequence_length_;
  uint64_t seed_;
  int64_t windows_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_DATASET_BATCH_SAMPLER_H_
