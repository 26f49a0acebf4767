#include "plinth/models/llama/llama.h"

#include <cmath>

namespace plinth::models {
namespace {

std::vector<float> InverseFrequencies(int64_t head_dim, double theta) {
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    inv_freq.push_back(static_cast<float>(std::pow(theta, -exponent)));
  }
  return inv_freq;
}

}  // namespace

Llama::Llama(const LlamaOptions& options)
    : options_(options), inv_freq_(InverseFrequencies(options.dims.head_dim, options.rope_theta)) {
  const ModelDims& d = options_.dims;
  token_embedding_ = &Add("token_embedding.weight", {d.vocab_size, d.model_dim},
                          Init::Normal(kInitStddev), /*decays=*/true);
  for (int64_t layer = 0; layer < d.layers; ++layer) blocks_.push_back(AddBlock(layer));
  final_norm_ = AddNorm("final_norm");
  head_ = options_.tie_embeddings ? token_embedding_
                                  : AddLinear("head", d.vocab_size, d.model_dim, kInitStddev);
}

const Parameter* Llama::AddNorm(const std::string& name) {
  return &Add(name + ".weight", Shape({options_.dims.model_dim}), Init::Ones(),
              /*decays=*/false);
}

const Parameter* Llama::AddLinear(const std::string& name, int64_t out, int64_t in, double stddev) {
  return &Add(name + ".weight", {out, in}, Init::Normal(stddev), /*decays=*/true);
}

Llama::Block Llama::AddBlock(int64_t layer) {
  const ModelDims& d = options_.dims;
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const double residual_stddev = ResidualInitStddev(d);
  return {
      .attention = AttentionOf(d, layer),
      .rope_q = {.heads = d.heads, .head_dim = d.head_dim, .inv_freq = inv_freq_},
      .rope_k = {.heads = d.kv_heads, .head_dim = d.head_dim, .inv_freq = inv_freq_},
      .norm_eps = options_.norm_eps,
      .attention_norm = AddNorm(prefix + "attention_norm"),
      .q = AddLinear(prefix + "attention.q", d.q_dim(), d.model_dim, kInitStddev),
      .k = AddLinear(prefix + "attention.k", d.kv_dim(), d.model_dim, kInitStddev),
      .v = AddLinear(prefix + "attention.v", d.kv_dim(), d.model_dim, kInitStddev),
      .output = AddLinear(prefix + "attention.output", d.model_dim, d.q_dim(), residual_stddev),
      .ffn_norm = AddNorm(prefix + "ffn_norm"),
      .gate = AddLinear(prefix + "ffn.gate", d.ffn_dim, d.model_dim, kInitStddev),
      .up = AddLinear(prefix + "ffn.up", d.ffn_dim, d.model_dim, kInitStddev),
      .down = AddLinear(prefix + "ffn.down", d.model_dim, d.ffn_dim, residual_stddev),
  };
}

Tensor Llama::Block::Forward(Ops& ops, const Tensor& x_TD, const TokenBatch& batch) const {
  const auto linear = [&ops](const Tensor& x, const Parameter* w) {
    return ops.Linear(x, *w, nullptr);
  };
  const Tensor h_TD = ops.RmsNorm(x_TD, *attention_norm, norm_eps);
  const Tensor mixed =
      ops.Attention(ops.Rope(linear(h_TD, q), rope_q, batch),
                    ops.Rope(linear(h_TD, k), rope_k, batch), linear(h_TD, v), attention, batch);
  const Tensor y_TD = ops.Add(x_TD, linear(mixed, output));
  const Tensor f_TD = ops.RmsNorm(y_TD, *ffn_norm, norm_eps);
  return ops.Add(y_TD, linear(ops.SwiGlu(linear(f_TD, gate), linear(f_TD, up)), down));
}

Tensor Llama::Hidden(Ops& ops, const TokenBatch& batch) const {
  Tensor x_TD = ops.Embedding(*token_embedding_, batch.ids);
  for (const Block& block : blocks_) {
    // x by value: backward may run the body again after x_TD has moved on.
    x_TD = ops.Checkpoint([&block, &batch, x_TD](Ops& o) { return block.Forward(o, x_TD, batch); });
  }
  if (!batch.all_rows) x_TD = ops.GatherRows(x_TD, batch.output_rows);
  return ops.RmsNorm(x_TD, *final_norm_, options_.norm_eps);
}

}  // namespace plinth::models
