#include "plinth/storage/dataset/batch_sampler.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/dataset/permutation.h"
#include "plinth/storage/io/checksum.h"

namespace plinth::storage {

SampleRange RankShare(int64_t position, int64_t batch, int rank, int world) {
  CHECK(rank >= 0 && rank < world) << rank << " of " << world;
  CHECK_GE(batch, 0);
  // The first batch % world ranks take one more.
  const int64_t base = batch / world, extra = batch % world;
  const int64_t begin = base * rank + std::min<int64_t>(rank, extra);
  return {position + begin, base + (rank < extra ? 1 : 0)};
}

absl::StatusOr<BatchSampler> BatchSampler::Create(const TokenDataset* dataset,
                                                  int64_t sequence_length, uint64_t seed) {
  if (sequence_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence length ", sequence_length, ", expected at least 1"));
  }
  const int64_t windows = (dataset->size() - 1) / sequence_length;
  if (windows < 1) {
    return absl::InvalidArgumentError(absl::StrCat(dataset->dir(), ": holds ", dataset->size(),
                                                   " tokens, a sample of length ", sequence_length,
                                                   " needs one more than that length"));
  }
  return BatchSampler(dataset, sequence_length, seed, windows);
}

int64_t BatchSampler::FirstToken(int64_t position) const {
  CHECK_GE(position, 0);
  const Permutation order(windows_, seed_, position / windows_);
  return static_cast<int64_t>(order(position % windows_)) * sequence_length_;
}

absl::Status BatchSampler::Read(const SampleRange& range, std::span<int32_t> out) const {
  const int64_t row = sequence_length_ + 1;
  CHECK_EQ(static_cast<int64_t>(out.size()), range.count * row);
  for (int64_t i = 0; i < range.count; ++i) {
    RETURN_IF_ERROR(dataset_->Copy(FirstToken(range.first + i), out.subspan(i * row, row)));
  }
  return absl::OkStatus();
}

DataCursor BatchSampler::CursorAt(int64_t position) const {
  CHECK_GE(position, 0);
  return {position / windows_, position % windows_, sequence_length_, dataset_->checksum()};
}

absl::StatusOr<int64_t> BatchSampler::PositionOf(const DataCursor& cursor) const {
  if (cursor == DataCursor()) return 0;
  if (cursor.sequence_length != sequence_length_ ||
      cursor.dataset_checksum != dataset_->checksum()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the data cursor counts samples of length ", cursor.sequence_length, " in dataset ",
        ChecksumText(cursor.dataset_checksum), "; this run has length ", sequence_length_,
        " and dataset ", ChecksumText(dataset_->checksum()), " (", dataset_->dir(), ")"));
  }
  if (cursor.epoch < 0 || cursor.sample < 0 || cursor.sample >= windows_ ||
      cursor.epoch > std::numeric_limits<int64_t>::max() / windows_ - 1) {
    return absl::InvalidArgumentError(absl::StrCat("data cursor at sample ", cursor.sample,
                                                   " of epoch ", cursor.epoch, ", expected 0 to ",
                                                   windows_ - 1));
  }
  return cursor.epoch * windows_ + cursor.sample;
}

}  // namespace plinth::storage
