#include "plinth/train/testing/tiny_run.h"

#include <cstddef>
#include <memory>
#include <span>

#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/check.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/train/testing/small_model.h"

namespace plinth::train::testing {
namespace {

constexpr char kTokenizer[] = "{\"a file that stands for\": \"a tokenizer\"}";

void WriteDataset(const std::string& dir, int64_t tokens) {
  auto writer = storage::DatasetWriter::Create(
      dir, {.vocab_size = 11, .checksum = storage::Checksum(std::string_view(kTokenizer))});
  CHECK_OK(writer);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(3 * i % 11));
  CHECK_OK((*writer)->Append(ids));
  (*writer)->AddSourceBytes(3 * tokens);
  CHECK_OK((*writer)->Finish());
}

}  // namespace

config::RunConfig MakeTinyRun(const std::string& dir) {
  CHECK_OK(storage::RemoveTree(dir));
  CHECK_OK(storage::MakeDirectories(dir));
  CHECK_OK(storage::WriteFileAtomically(dir + "/tokenizer.json", kTokenizer));
  WriteDataset(dir + "/train", 400);
  WriteDataset(dir + "/eval", 90);
  config::RunConfig config;
  config.set_name("tiny");
  *config.mutable_model() = SmallConfig(config::LLAMA, /*tied=*/true);
  config.mutable_data()->set_tokenizer(dir + "/tokenizer.json");
  config.mutable_data()->set_train(dir + "/train");
  config.mutable_data()->set_eval(dir + "/eval");
  config::TrainConfig& train = *config.mutable_train();
  train.set_steps(40);
  train.set_sequence_length(8);
  train.set_global_batch(4);
  train.set_micro_batch(1);
  train.set_seed(5);
  train.mutable_adamw()->set_lr(0.02);
  train.mutable_adamw()->set_weight_decay(0.1);
  train.mutable_schedule()->set_warmup_steps(4);
  train.set_clip_norm(1);
  train.set_bucket_bytes(1024);
  train.set_run_dir(dir + "/run");
  config.mutable_hardware()->set_threads(1);
  config::FillDefaults(config);
  CHECK_OK(config::CheckValid(config, config::Purpose::kTrain));
  return config;
}

std::map<std::string, std::string> NewestTensors(const std::string& run_dir) {
  const auto found = storage::FindLatest(run_dir);
  if (!found.ok()) return {};
  const auto reader = storage::CheckpointReader::Open(found->dir, {.verify_reads = true});
  CHECK_OK(reader);
  std::map<std::string, std::string> tensors;
  for (const storage::CheckpointTensor& tensor : (*reader)->tensors()) {
    std::string& bytes = tensors[tensor.name];
    bytes.resize(static_cast<size_t>(storage::Elements(tensor.shape) * DTypeSize(tensor.dtype)));
    CHECK_OK((*reader)->Read(tensor.name, std::as_writable_bytes(std::span(bytes))));
  }
  return tensors;
}

int64_t NewestStep(const std::string& run_dir) {
  const auto found = storage::FindLatest(run_dir, /*verify_checksums=*/true);
  return found.ok() ? found->step : -1;
}

}  // namespace plinth::train::testing
