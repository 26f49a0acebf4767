#include "plinth/train/loop/run_data.h"

#include <algorithm>
#include <span>
#include <utility>

#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::train {

absl::StatusOr<std::unique_ptr<SampleSource>> SampleSource::Open(
    const std::string& dir, const storage::TokenizerIdentity& tokenizer, int64_t sequence_length,
    uint64_t seed) {
  ASSIGN_OR_RETURN(std::unique_ptr<storage::TokenDataset> dataset,
                   storage::TokenDataset::Open(dir));
  RETURN_IF_ERROR(dataset->CheckTokenizer(tokenizer));
  ASSIGN_OR_RETURN(const storage::BatchSampler sampler,
                   storage::BatchSampler::Create(dataset.get(), sequence_length, seed));
  return std::unique_ptr<SampleSource>(new SampleSource(std::move(dataset), sampler));
}

absl::StatusOr<std::vector<MicroBatch>> SampleSource::Read(const storage::SampleRange& range,
                                                           int64_t micro_batch) const {
  const int64_t row = sampler_.sequence_length() + 1;
  std::vector<int32_t> tokens(static_cast<size_t>(range.count * row));
  RETURN_IF_ERROR(sampler_.Read(range, tokens)) << dataset_->dir();
  std::vector<MicroBatch> batches;
  for (int64_t i = 0; i < range.count; ++i) {
    if (i % micro_batch == 0) batches.emplace_back();
    batches.back().Add(std::span<const int32_t>(tokens).subspan(i * row, row));
  }
  return batches;
}

absl::StatusOr<RunData> OpenRunData(const config::RunConfig& config) {
  const config::DataConfig& paths = config.data();
  const int64_t length = config.train().sequence_length();
  RunData data;
  ASSIGN_OR_RETURN(data.tokenizer_json, storage::ReadFile(paths.tokenizer()),
                   _ << "data.tokenizer");
  const storage::TokenizerIdentity tokenizer = {
      .vocab_size = config.model().vocab_size(),
      .checksum = storage::Checksum(std::string_view(data.tokenizer_json))};
  ASSIGN_OR_RETURN(data.train,
                   SampleSource::Open(paths.train(), tokenizer, length, config.train().seed()),
                   _ << "data.train");
  if (paths.eval().empty()) return data;
  // Always the same samples, whatever the run's seed: evaluations of runs can be compared.
  constexpr uint64_t kEvalSeed = 0;
  ASSIGN_OR_RETURN(data.eval, SampleSource::Open(paths.eval(), tokenizer, length, kEvalSeed),
                   _ << "data.eval");
  return data;
}

}  // namespace plinth::train
