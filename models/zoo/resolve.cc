#include "plinth/models/zoo/resolve.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/config/loader/loader.h"

namespace plinth::models {
namespace {

// Elements, bytes of elements and FLOPs of one pass stay below 2^63.
constexpr double kMaxParameters = 1e15;

// In double, and never less than the exact count: that one is only computed once it fits.
double UpperBoundOfParameters(const ModelDims& d) {
  const double heads = static_cast<double>(d.heads) * static_cast<double>(d.head_dim);
  const double block = 4 * (heads + static_cast<double>(d.ffn_dim) + 4);
  return static_cast<double>(d.model_dim) *
         (2 * static_cast<double>(d.vocab_size) + static_cast<double>(d.max_positions) +
          static_cast<double>(d.layers) * block + 2);
}

}  // namespace

absl::StatusOr<ModelSpec> ResolveModel(const config::ModelConfig& config) {
  config::ModelConfig filled = config;
  config::FillDefaults(filled);
  const std::vector<std::string> violations = config::Validate(filled);
  if (!violations.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid model: ", absl::StrJoin(violations, "; ")));
  }
  const ModelDims dims{.vocab_size = filled.vocab_size(),
                       .layers = filled.layers(),
                       .model_dim = filled.model_dim(),
                       .heads = filled.heads(),
                       .kv_heads = filled.kv_heads(),
                       .head_dim = filled.head_dim(),
                       .ffn_dim = filled.ffn_dim(),
                       .max_positions = filled.max_positions()};
  if (UpperBoundOfParameters(dims) > kMaxParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid model: about ", UpperBoundOfParameters(dims),
                     " parameters, must be at most ", kMaxParameters));
  }
  return ModelSpec{.architecture = filled.architecture(),
                   .dims = dims,
                   .norm_eps = filled.norm_eps(),
                   .rope_theta = filled.rope_theta(),
                   .tie_embeddings = filled.tie_embeddings()};
}

}  // namespace plinth::models
