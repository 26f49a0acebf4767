#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/config/loader/loader.h"

namespace plinth::config {
namespace {

// Ids, positions and rows are counted in 32 bits; products of two sizes fit in 64.
// Each layer is an object with a dozen tensors: more are a mistyped number.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

// Collects violations; each check states the field's path, the rule and the value.
class Violations {
 public:
  template <typename T>
  void AtLeast(const char* path, T value, T least) {
    if (!(value >= least)) Add(path, absl::StrCat("must be at least ", least, ", is ", value));
  }
  template <typename T>
  void AtMost(const char* path, T value, T most, const char* what) {
    if (!(value <= most)) {
      Add(path, absl::StrCat("must be at most ", what, " (", most, "), is ", value));
    }
  }
  void Size(const char* path, int64_t value) {
    AtLeast<int64_t>(path, value, 1);
    AtMost<int64_t>(path, value, kMaxSize, "the largest size");
  }
  void Positive(const char* path, double value) {
    if (!(value > 0) || !std::isfinite(value)) {
      Add(path, absl::StrCat("must be positive, is ", value));
    }
  }
  void InUnit(const char* path, double value, bool closed) {
    if (!(value >= 0 && (closed ? value <= 1 : value < 1))) {
      Add(path, absl::StrCat("must lie in [0, 1", closed ? "]" : ")", ", is ", value));
    }
  }
  void Multiple(const char* path, int64_t value, int64_t of, const char* what) {
    if (of > 0 && value % of != 0) {
      // The nearest legal values on both sides save the user the arithmetic.
      const int64_t below = value / of * of;
      const std::string legal =
          below > 0 ? absl::StrCat(below, " or ", below + of) : absl::StrCat(below + of);
      Add(path, absl::StrCat("must be a multiple of ", what, " (", of, "), is ", value,
                             "; nearest: ", legal));
    }
  }
  void Set(const char* path, const std::string& value) {
    if (value.empty()) Add(path, "is required");
  }
  void Add(const char* path, const std::string& rule) {
    list_.push_back(absl::StrCat(path, ": ", rule));
  }
  std::vector<std::string> Take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void CheckModel(const ModelConfig& model, Violations& v) {
  if (model.architecture() != GPT2 && model.architecture() != LLAMA) {
    v.Add("model.architecture", "is required (GPT2 or LLAMA)");
  }
  v.Positive("model.norm_eps", model.norm_eps());
  v.Positive("model.rope_theta", model.rope_theta());
  v.Size("model.vocab_size", model.vocab_size());
  v.AtLeast<int64_t>("model.layers", model.layers(), 1);
  v.AtMost<int64_t>("model.layers", model.layers(), kMaxLayers, "the most layers");
  v.Size("model.model_dim", model.model_dim());
  v.Size("model.heads", model.heads());
  v.Size("model.kv_heads", model.kv_heads());
  v.Size("model.ffn_dim", model.ffn_dim());
  v.Size("model.max_positions", model.max_positions());
  v.AtMost<int64_t>("model.head_dim", model.head_dim(), kMaxSize, "the largest size");
  for (const int64_t size :
       {model.model_dim(), model.heads(), model.kv_heads(), model.head_dim()}) {
    if (size < 0 || size > kMaxSize) return;  // the arithmetic below could overflow
  }
  // No default was given when the heads do not divide the width.
  if (model.head_dim() == 0) {
    v.Multiple("model.model_dim", model.model_dim(), model.heads(), "model.heads");
  } else {
    v.AtLeast<int64_t>("model.head_dim", model.head_dim(), 1);
  }
  v.Multiple("model.heads", model.heads(), model.kv_heads(), "model.kv_heads");
  if (model.architecture() == LLAMA) v.Multiple("model.head_dim", model.head_dim(), 2, "2");
  if (model.architecture() == GPT2) {
    if (model.kv_heads() != model.heads()) {
      v.Add("model.kv_heads", "GPT2 has one key/value head for each head");
    }
    if (model.head_dim() != 0 && model.head_dim() * model.heads() != model.model_dim()) {
      v.Add("model.model_dim", absl::StrCat("GPT2 needs heads (", model.heads(), ") * head_dim (",
                                            model.head_dim(), "), is ", model.model_dim()));
    }
  }
}

void CheckTrain(const RunConfig& config, Violations& v) {
  const TrainConfig& train = config.train();
  v.Set("data.tokenizer", config.data().tokenizer());
  v.Set("data.train", config.data().train());
  v.Set("train.run_dir", train.run_dir());
  v.AtLeast<int64_t>("train.steps", train.steps(), 1);
  v.AtLeast<int64_t>("train.sequence_length", train.sequence_length(), 2);
  v.AtMost("train.sequence_length", train.sequence_length(), config.model().max_positions(),
           "model.max_positions");
  v.AtLeast<int64_t>("train.micro_batch", train.micro_batch(), 1);
  v.AtLeast<int64_t>("train.global_batch", train.global_batch(), 1);
  if (train.micro_batch() > 0 && config.cluster().ranks() > 0) {
    v.Multiple("train.global_batch", train.global_batch(),
               train.micro_batch() * config.cluster().ranks(), "cluster.ranks * train.micro_batch");
  }
  v.Positive("train.adamw.lr", train.adamw().lr());
  v.InUnit("train.adamw.beta1", train.adamw().beta1(), false);
  v.InUnit("train.adamw.beta2", train.adamw().beta2(), false);
  v.Positive("train.adamw.eps", train.adamw().eps());
  v.AtLeast("train.adamw.weight_decay", train.adamw().weight_decay(), 0.0);
  v.AtLeast<int64_t>("train.schedule.warmup_steps", train.schedule().warmup_steps(), 0);
  v.AtMost("train.schedule.warmup_steps", train.schedule().warmup_steps(), train.steps(),
           "train.steps");
  v.InUnit("train.schedule.final_ratio", train.schedule().final_ratio(), true);
  v.AtLeast("train.clip_norm", train.clip_norm(), 0.0);
  v.AtLeast<int64_t>("train.eval_every", train.eval_every(), 0);
  v.AtLeast<int64_t>("train.eval_samples", train.eval_samples(), 0);
  v.AtLeast<int64_t>("train.bucket_bytes", train.bucket_bytes(), 1);
  v.AtLeast<int64_t>("train.checkpoint_every", train.checkpoint_every(), 0);
  v.AtLeast<int64_t>("train.keep_checkpoints", train.keep_checkpoints(), 1);
}

void CheckServe(const ServeConfig& serve, Violations& v) {
  v.Set("serve.checkpoint", serve.checkpoint());
  v.AtLeast("serve.http_port", serve.http_port(), 1);
  v.AtMost("serve.http_port", serve.http_port(), 65535, "the largest port");
  v.AtLeast("serve.grpc_port", serve.grpc_port(), 0);
  v.AtMost("serve.grpc_port", serve.grpc_port(), 65535, "the largest port");
  v.AtLeast<int64_t>("serve.max_batch", serve.max_batch(), 1);
  v.AtLeast<int64_t>("serve.max_queue", serve.max_queue(), 1);
  // The model comes with the checkpoint, so a cache size of 0 is settled there.
  v.AtLeast<int64_t>("serve.kv_tokens", serve.kv_tokens(), 0);
}

}  // namespace

std::vector<std::string> Validate(const RunConfig& config, Purpose purpose) {
  Violations v;
  // A served model comes with its checkpoint.
  if (purpose != Purpose::kServe) CheckModel(config.model(), v);
  if (purpose == Purpose::kTrain) CheckTrain(config, v);
  if (purpose == Purpose::kServe) CheckServe(config.serve(), v);
  v.AtLeast("hardware.threads", config.hardware().threads(), 0);
  v.AtLeast<int64_t>("hardware.memory_limit", config.hardware().memory_limit(), 0);
  v.Positive("comm.timeout_seconds", config.comm().timeout_seconds());
  v.AtLeast("cluster.ranks", config.cluster().ranks(), 1);
  v.AtLeast("cluster.max_restarts", config.cluster().max_restarts(), 0);
  v.Positive("cluster.grace_seconds", config.cluster().grace_seconds());
  return v.Take();
}

std::vector<std::string> Validate(const ModelConfig& model) {
  Violations v;
  CheckModel(model, v);
  return v.Take();
}

absl::Status CheckValid(const RunConfig& config, Purpose purpose) {
  const std::vector<std::string> violations = Validate(config, purpose);
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid config: ", absl::StrJoin(violations, "; ")));
}

}  // namespace plinth::config
