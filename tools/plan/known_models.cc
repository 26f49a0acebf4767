#include "plinth/tools/plan/known_models.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::tools {
namespace {

struct Row {
  const char* name;
  config::Architecture architecture;
  int64_t vocab, layers, width, heads, kv_heads, ffn, positions;
  double rope_theta;
};

// Sizes as published with the weights (GPT-2: Radford et al., 2019; Llama: the config.json files).
constexpr Row kModels[] = {
    {"gpt2_124m", config::GPT2, 50257, 12, 768, 12, 12, 3072, 1024, 0},
    {"gpt2_1.5b", config::GPT2, 50257, 48, 1600, 25, 25, 6400, 1024, 0},
    {"llama2_7b", config::LLAMA, 32000, 32, 4096, 32, 32, 11008, 4096, 10000},
    {"llama3_8b", config::LLAMA, 128256, 32, 4096, 32, 8, 14336, 8192, 500000},
    {"llama2_70b", config::LLAMA, 32000, 80, 8192, 64, 8, 28672, 4096, 10000},
};

}  // namespace

std::vector<std::string> KnownModelNames() {
  std::vector<std::string> names;
  for (const Row& row : kModels) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<config::ModelConfig> KnownModel(std::string_view name) {
  for (const Row& row : kModels) {
    if (name != row.name) continue;
    config::ModelConfig model;
    model.set_architecture(row.architecture);
    model.set_vocab_size(row.vocab);
    model.set_layers(row.layers);
    model.set_model_dim(row.width);
    model.set_heads(row.heads);
    model.set_kv_heads(row.kv_heads);
    model.set_ffn_dim(row.ffn);
    model.set_max_positions(row.positions);
    model.set_rope_theta(row.rope_theta);
    return model;
  }
  return absl::NotFoundError(absl::StrCat("--count: no model \"", std::string(name),
                                          "\"; known: ", absl::StrJoin(KnownModelNames(), ", ")));
}

}  // namespace plinth::tools
