#include "plinth/tools/plan/report.h"

#include <boost/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/zoo/resolve.h"

namespace plinth::tools {
namespace {

namespace json = boost::json;

constexpr int64_t kBf16Bytes = 2;

absl::StatusOr<Plan> Count(const std::string& name, const config::ModelConfig& model,
                           int64_t sequence_length) {
  ASSIGN_OR_RETURN(const models::ModelSpec spec, models::ResolveModel(model));
  const int64_t length = sequence_length > 0 ? sequence_length : spec.dims.max_positions;
  const models::ForwardFlops forward = models::CountForwardFlops(spec, length, 0, length);
  return Plan{.name = name,
              .parameters = models::CountParameters(spec),
              .sequence_length = length,
              .train_flops_per_token = models::TrainFlopsPerToken(spec, length),
              .forward_flops_per_token = forward.total() / static_cast<double>(length),
              .kv_bytes_per_token = models::KvBytesPerToken(spec, kBf16Bytes)};
}

// 1234567 -> "1,234,567".
std::string Grouped(int64_t value) {
  if (value < 1000) return absl::StrCat(value);
  return absl::StrFormat("%s,%03d", Grouped(value / 1000), value % 1000);
}

std::string Flops(double flops) {
  return flops >= 1e9 ? absl::StrFormat("%.2f GFLOP", flops / 1e9)
                      : absl::StrFormat("%.2f MFLOP", flops / 1e6);
}

std::string Row(const char* what, const std::string& value, const std::string& note) {
  return absl::StrFormat("%-16s %18s%s%s\n", what, value, note.empty() ? "" : "  ", note);
}
std::string MemoryRow(const char* what, int64_t bytes, const std::string& note = "") {
  return Row(what, absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)), note);
}

std::string TrainTable(const TrainMemory& m, const config::RunConfig& config) {
  const config::TrainConfig& train = config.train();
  std::string text = absl::StrFormat(
      "\nTraining, each of %d ranks: micro-batch %d x %d tokens, f32%s\n", config.cluster().ranks(),
      train.micro_batch(), train.sequence_length(), train.recompute() ? ", recompute" : "");
  text += MemoryRow("weights", m.weights);
  text += MemoryRow("gradients", m.gradients,
                    absl::StrFormat("%d buckets, the largest %.1f MiB", m.buckets,
                                    static_cast<double>(m.largest_bucket) / (1 << 20)));
  text += MemoryRow("AdamW's moments", m.moments);
  text += MemoryRow("activations", m.activations, "kept for backward");
  text += MemoryRow("logits", m.logits, "of the rows that exist at once");
  text += MemoryRow("peak", m.peak, "with temporaries of backward");
  return text;
}

std::string ServeTable(const ServeMemory& m, const config::ServeConfig& serve) {
  const bool bf16 = serve.weights() == config::WEIGHT_BF16;
  std::string text = "\nServing\n";
  text += MemoryRow("weights", m.weights, "as loaded, f32");
  text += MemoryRow("packed weights", m.packed, bf16 ? "bf16" : "f32");
  text += MemoryRow("KV cache", m.cache, absl::StrFormat("%d tokens, f32", serve.kv_tokens()));
  text += MemoryRow("peak", m.peak, "with temporaries of a step");
  return text;
}

}  // namespace

absl::StatusOr<Plan> PlanModel(const std::string& name, const config::ModelConfig& model) {
  return Count(name, model, /*sequence_length=*/0);
}

absl::StatusOr<Plan> PlanRun(const config::RunConfig& config) {
  const config::TrainConfig& train = config.train();
  ASSIGN_OR_RETURN(Plan plan, Count(config.name(), config.model(), train.sequence_length()));
  plan.config = config;
  if (train.sequence_length() > 0 && train.micro_batch() > 0) {
    ASSIGN_OR_RETURN(plan.train, PlanTraining(config));
  }
  ASSIGN_OR_RETURN(plan.serve, PlanServing(config));
  return plan;
}

std::string ToTable(const Plan& plan) {
  const models::ParameterCount& p = plan.parameters;
  std::string text = plan.name + "\n";
  text += Row("parameters", Grouped(p.total()),
              absl::StrCat("embeddings ", Grouped(p.embeddings), ", layers ", Grouped(p.layers),
                           ", final norm ", Grouped(p.final_norm), ", head ", Grouped(p.head)));
  const std::string at = absl::StrCat("per token, sequences of ", plan.sequence_length);
  text += Row("training", Flops(plan.train_flops_per_token), at);
  text += Row("forward", Flops(plan.forward_flops_per_token), at);
  text += Row("KV cache", Grouped(plan.kv_bytes_per_token),
              "bytes per token in bf16; the server keeps f32, twice that");
  if (plan.train) text += TrainTable(*plan.train, *plan.config);
  if (plan.serve) text += ServeTable(*plan.serve, plan.config->serve());
  return text;
}

std::string ToJson(const Plan& plan) {
  const models::ParameterCount& p = plan.parameters;
  json::object object = {{"schema", "plinth.plan.v1"},
                         {"name", plan.name},
                         {"parameters", p.total()},
                         {"parameters_embeddings", p.embeddings},
                         {"parameters_layers", p.layers},
                         {"parameters_final_norm", p.final_norm},
                         {"parameters_head", p.head},
                         {"sequence_length", plan.sequence_length},
                         {"train_flops_per_token", plan.train_flops_per_token},
                         {"forward_flops_per_token", plan.forward_flops_per_token},
                         {"kv_bytes_per_token_bf16", plan.kv_bytes_per_token}};
  if (plan.train) {
    const TrainMemory& m = *plan.train;
    object["train_rank_bytes"] = json::object{
        {"weights", m.weights}, {"gradients", m.gradients},          {"moments", m.moments},
        {"peak", m.peak},       {"activations", m.activations},      {"logits", m.logits},
        {"buckets", m.buckets}, {"largest_bucket", m.largest_bucket}};
  }
  if (plan.serve) {
    const ServeMemory& m = *plan.serve;
    object["serve_bytes"] = json::object{
        {"weights", m.weights}, {"packed", m.packed}, {"kv_cache", m.cache}, {"peak", m.peak}};
  }
  return json::serialize(object) + "\n";
}

}  // namespace plinth::tools
