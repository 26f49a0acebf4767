// ServedModel: a checkpoint, ready to answer requests.
//
//   ASSIGN_OR_RETURN(auto served, ServedModel::Load(config.serve().checkpoint(),
//   config.hardware())); ASSIGN_OR_RETURN(auto engine, served->NewEngine(config.serve()));
#ifndef PLINTH_INFER_LOAD_SERVED_MODEL_H_
#define PLINTH_INFER_LOAD_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/config/hardware.pb.h"
#include "plinth/config/infer.pb.h"
#include "plinth/config/run.pb.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/engine/text_decoder.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer {

// Owns the device, its memory, the threads, the weights and the tokenizer. Immutable after
// Load; outlives its engine, of which there is one at a time.
class ServedModel {
 public:
  // `path` is one checkpoint, or a run: then its latest complete one. Everything that the
  // model needs comes from the checkpoint: config, tokenizer, weights.
  // Errors: those of storage's reader; kInvalidArgument for a config that describes no model;
  // kFailedPrecondition for tensors that do not fit it, or a tokenizer whose vocabulary is
  // not the model's, with both numbers.
  static absl::StatusOr<std::unique_ptr<ServedModel>> Load(const std::string& path,
                                                           const config::HardwareConfig& hardware);

  // Zero fields of `serve` mean the defaults that config/infer.proto states. Errors: Engine's.
  absl::StatusOr<std::unique_ptr<Engine>> NewEngine(const config::ServeConfig& serve);

  // Ids of a prompt, as EncodePrompt (prompt.h) gives them.
  absl::StatusOr<std::vector<int32_t>> EncodePrompt(std::string_view text) const;

  // The config that made the checkpoint.
  const config::RunConfig& config() const { return config_; }
  const std::string& checkpoint_dir() const { return checkpoint_dir_; }
  int64_t step() const { return step_; }
  const models::Tokenizer& tokenizer() const { return *tokenizer_; }
  const models::LanguageModel& model() const { return *model_; }

 private:
  ServedModel(std::unique_ptr<Device> device, int threads, int64_t memory_limit);
  absl::Status LoadCheckpoint(const std::string& dir);

  // Each uses those above it.
  std::unique_ptr<Device> device_;
  Threads threads_;
  CachingAllocator allocator_;
  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<models::Tokenizer> tokenizer_;
  config::RunConfig config_;
  std::string checkpoint_dir_;
  int64_t step_ = 0;
};

// Decodes with a tokenizer, which outlives the decoders. An id that has no token shows as
// U+FFFD; special tokens give no text.
TextDecoderFactory DecodeWith(const models::Tokenizer* tokenizer);

}  // namespace plinth::infer

#endif  // PLINTH_INFER_LOAD_SERVED_MODEL_H_
