#include "plinth/infer/load/test_checkpoint.h"

#include <cstddef>
#include <span>
#include <vector>

#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/cpu/cpu_device.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/tokenizer/bpe_trainer.h"
#include "plinth/models/zoo/create.h"
#include "plinth/storage/checkpoint/box.h"
#include "plinth/storage/checkpoint/trainer_state.h"
#include "plinth/storage/checkpoint/writer.h"

namespace plinth::infer {
namespace {

config::RunConfig Config(const TestCheckpointOptions& options, int64_t vocab_size) {
  config::RunConfig config;
  config.set_name("tiny test");
  config::ModelConfig& model = *config.mutable_model();
  model.set_architecture(config::LLAMA);
  model.set_vocab_size(vocab_size);
  model.set_layers(options.layers);
  model.set_model_dim(16);
  model.set_heads(4);
  model.set_kv_heads(2);
  model.set_ffn_dim(24);
  model.set_max_positions(options.positions);
  return config;
}

absl::StatusOr<std::unique_ptr<models::Tokenizer>> TrainTokenizer(int32_t vocab_size) {
  ASSIGN_OR_RETURN(const auto trainer, models::BpeTrainer::Create({.vocab_size = vocab_size}));
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the cat sat on the mat and the hat ";
  RETURN_IF_ERROR(trainer->AddText(text));
  return trainer->Train();
}

void AddTensor(storage::CheckpointWriter& writer, const char* group, const std::string& name,
               const TensorView& view) {
  const std::vector<int64_t> dims(view.shape.dims().begin(), view.shape.dims().end());
  writer.Add(
      group,
      {.name = name,
       .dtype = DType::kF32,
       .shape = dims,
       .box = storage::Box::Whole(dims),
       .bytes = std::as_bytes(std::span(view.ptr<float>(), static_cast<size_t>(view.elements())))});
}

// Widens the logits of merged tokens; those of single bytes and of the special token, which
// has the last id, become 0.
void MakeWordy(models::LanguageModel& model) {
  for (models::Parameter* p : model.parameters()) {
    if (p->name() != "head.weight") continue;
    const std::span<float> rows(p->value().view().ptr<float>(),
                                static_cast<size_t>(p->shape().elements()));
    const size_t width = static_cast<size_t>(model.dims().model_dim);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] *= i < 256 * width || i >= rows.size() - width ? 0.0f : 80.0f;
    }
  }
}

}  // namespace

absl::Status WriteTestCheckpoint(const std::string& run_dir, const TestCheckpointOptions& options) {
  ASSIGN_OR_RETURN(const auto trained, TrainTokenizer(265));
  ASSIGN_OR_RETURN(const auto stored, TrainTokenizer(265 + options.extra_tokens));
  const models::Tokenizer& tokenizer = options.tokenizer ? *options.tokenizer : *trained;
  const config::RunConfig config = Config(options, tokenizer.vocab_size());
  const std::unique_ptr<Device> device = CreateCpuDevice();
  CachingAllocator allocator(device.get());
  const std::unique_ptr<Stream> stream = device->CreateStream();
  ASSIGN_OR_RETURN(const auto model, models::CreateModel(config.model()));
  models::Initialize(*model, 5, allocator, *stream);
  RETURN_IF_ERROR(stream->Synchronize());
  if (options.wordy) MakeWordy(*model);
  ASSIGN_OR_RETURN(const auto writer,
                   storage::CheckpointWriter::Create({.run_dir = run_dir, .step = options.step}));
  for (const models::Parameter* p : model->parameters()) {
    if (p->name() == options.left_out) continue;
    AddTensor(*writer, "model", p->name(), p->value().view());
    AddTensor(*writer, "optim", p->name() + ".m", p->value().view());
  }
  writer->AddTokenizerFile("tokenizer.json", (options.tokenizer ? tokenizer : *stored).ToJson());
  storage::TrainerState state;
  state.step = options.step;
  state.config_text = config::ToText(config);
  return writer->Commit(state);
}

}  // namespace plinth::infer
