#include "plinth/infer/load/served_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/setup/setup.h"
#include "plinth/hardware/text/utf8.h"
#include "plinth/infer/load/checkpoint_source.h"
#include "plinth/infer/load/prompt.h"
#include "plinth/models/loading/load_parameters.h"
#include "plinth/models/tokenizer/streaming_decoder.h"
#include "plinth/models/zoo/create.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/reader.h"

namespace plinth::infer {
namespace {

class TokenizerDecoder : public TextDecoder {
 public:
  explicit TokenizerDecoder(const models::Tokenizer* tokenizer)
      : stream_(tokenizer, {.skip_special = true}) {}

  std::string Push(int32_t id) override {
    absl::StatusOr<std::string> text = stream_.Push(id);
    return text.ok() ? *std::move(text) : std::string(kReplacementCharacter);
  }
  std::string Flush() override { return stream_.Flush(); }

 private:
  models::StreamingDecoder stream_;
};

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("serve.checkpoint: is required (a checkpoint or a run)");
  }
  ASSIGN_OR_RETURN(const storage::FoundCheckpoint found, storage::FindCheckpoint(path));
  for (const std::string& skipped : found.skipped) LOG(WARNING) << "passing over " << skipped;
  return found.dir;
}

}  // namespace

TextDecoderFactory DecodeWith(const models::Tokenizer* tokenizer) {
  return [tokenizer] { return std::make_unique<TokenizerDecoder>(tokenizer); };
}

ServedModel::ServedModel(std::unique_ptr<Device> device, int threads, int64_t memory_limit)
    : device_(std::move(device)), threads_(threads), allocator_(device_.get(), memory_limit) {}

absl::StatusOr<std::unique_ptr<ServedModel>> ServedModel::Load(
    const std::string& path, const config::HardwareConfig& hardware) {
  ASSIGN_OR_RETURN(const std::string dir, FindCheckpoint(path));
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(hardware));
  ASSIGN_OR_RETURN(const int threads, KernelThreads(hardware, 1));
  std::unique_ptr<ServedModel> served(
      new ServedModel(std::move(device), threads, hardware.memory_limit()));
  RETURN_IF_ERROR(served->LoadCheckpoint(dir));
  return served;
}

absl::Status ServedModel::LoadCheckpoint(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::CheckpointReader> reader,
                   storage::CheckpointReader::Open(dir, {.verify_reads = true}));
  checkpoint_dir_ = dir;
  step_ = reader->state().step;
  ASSIGN_OR_RETURN(config_,
                   config::ParseRunConfig(reader->state().config_text, dir + ": config", {}));
  ASSIGN_OR_RETURN(model_, models::CreateModel(config_.model()), _ << dir);
  ASSIGN_OR_RETURN(const std::string json, reader->ReadTokenizerFile("tokenizer.json"));
  ASSIGN_OR_RETURN(tokenizer_, models::Tokenizer::Parse(json), _ << dir << ": tokenizer.json");
  if (tokenizer_->vocab_size() != model_->dims().vocab_size) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, ": the tokenizer has ", tokenizer_->vocab_size(), " tokens, the model ",
                     model_->dims().vocab_size));
  }
  CheckpointSource source(*reader);
  const std::unique_ptr<Stream> stream = device_->CreateStream();
  RETURN_IF_ERROR(models::LoadParameters(*model_, source, allocator_, *stream));
  return stream->Synchronize();
}

absl::StatusOr<std::unique_ptr<Engine>> ServedModel::NewEngine(const config::ServeConfig& serve) {
  config::ServeConfig filled = serve;
  config::FillDefaults(filled);
  EngineOptions options{.max_batch = filled.max_batch(),
                        .max_queue = filled.max_queue(),
                        .kv_tokens = filled.kv_tokens(),
                        .text_decoder = DecodeWith(tokenizer_.get())};
  options.step_tokens = std::max(options.step_tokens, options.max_batch);
  if (serve.weights() == config::WEIGHT_BF16) options.weights = DType::kBf16;
  if (tokenizer_->end_of_text_id()) options.end_ids = {*tokenizer_->end_of_text_id()};
  return Engine::Create(*model_, *device_, threads_, std::move(options));
}

absl::StatusOr<std::vector<int32_t>> ServedModel::EncodePrompt(std::string_view text) const {
  return infer::EncodePrompt(*tokenizer_, text);
}

}  // namespace plinth::infer
