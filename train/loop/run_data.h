// RunData: the tokenizer and the datasets of a run, opened and checked against the model.
#ifndef PLINTH_TRAIN_LOOP_RUN_DATA_H_
#define PLINTH_TRAIN_LOOP_RUN_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/config/run.pb.h"
#include "plinth/storage/dataset/batch_sampler.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/train/loop/micro_batch.h"

namespace plinth::train {

// Samples of one dataset. Owns the mapping. Thread-safe.
class SampleSource {
 public:
  // Errors: the dataset's, naming its path; kFailedPrecondition when it was made with another
  // tokenizer.
  static absl::StatusOr<std::unique_ptr<SampleSource>> Open(
      const std::string& dir, const storage::TokenizerIdentity& tokenizer, int64_t sequence_length,
      uint64_t seed);

  const storage::BatchSampler& sampler() const { return sampler_; }
  const storage::TokenDataset& dataset() const { return *dataset_; }

  // The samples of a range, at most `micro_batch` in each batch.
  absl::StatusOr<std::vector<MicroBatch>> Read(const storage::SampleRange& range,
                                               int64_t micro_batch) const;

 private:
  SampleSource(std::unique_ptr<storage::TokenDataset> dataset, storage::BatchSampler sampler)
      : dataset_(std::move(dataset)), sampler_(sampler) {}

  std::unique_ptr<storage::TokenDataset> dataset_;
  storage::BatchSampler sampler_;
};

struct RunData {
  std::string tokenizer_json;
  std::unique_ptr<SampleSource> train;
  std::unique_ptr<SampleSource> eval;  // null when the config names none
};

// Errors name the file and, for a mismatch, both sides.
absl::StatusOr<RunData> OpenRunData(const config::RunConfig& config);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_LOOP_RUN_DATA_H_
