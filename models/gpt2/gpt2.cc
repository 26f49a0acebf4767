#include "plinth/models/gpt2/gpt2.h"

#include <string>

namespace plinth::models {
Gpt2::Gpt2(const Gpt2Options& options) : options_(options) {
  const ModelDims& d = options_.dims;
  token_embedding_ = &Add("token_embedding.weight", {d.vocab_size, d.model_dim},
                          Init::Normal(kInitStddev), /*decays=*/true);
  position_embedding_ = &Add("position_embedding.weight", {d.max_positions, d.model_dim},
                             Init::Normal(kInitStddev), /*decays=*/true);
  for (int64_t layer = 0; layer < d.layers; ++layer) blocks_.push_back(AddBlock(layer));
  final_norm_ = AddNorm("final_norm");
}

Gpt2::Affine Gpt2::AddNorm(const std::string& name) {
  const Shape shape({options_.dims.model_dim});
  const Parameter& gain = Add(name + ".weight", shape, Init::Ones(), /*decays=*/false);
  return {&gain, &Add(name + ".bias", shape, Init::Zeros(), /*decays=*/false)};
}

Gpt2::Affine Gpt2::AddLinear(const std::string& name, int64_t out, int64_t in, double stddev) {
  const Parameter& weight = Add(name + ".weight", {out, in}, Init::Normal(stddev), /*decays=*/true);
  return {&weight, &Add(name + ".bias", Shape({out}), Init::Zeros(), /*decays=*/false)};
}

Gpt2::Block Gpt2::AddBlock(int64_t layer) {
  const ModelDims& d = options_.dims;
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const double residual_stddev = ResidualInitStddev(d);
  return {
      .attention = AttentionOf(d, layer),
      .norm_eps = options_.norm_eps,
      .attention_norm = AddNorm(prefix + "attention_norm"),
      .q = AddLinear(prefix + "attention.q", d.q_dim(), d.model_dim, kInitStddev),
      .k = AddLinear(prefix + "attention.k", d.kv_dim(), d.model_dim, kInitStddev),
      .v = AddLinear(prefix + "attention.v", d.kv_dim(), d.model_dim, kInitStddev),
      .output = AddLinear(prefix + "attention.output", d.model_dim, d.q_dim(), residual_stddev),
      .ffn_norm = AddNorm(prefix + "ffn_norm"),
      .up = AddLinear(prefix + "ffn.up", d.ffn_dim, d.model_dim, kInitStddev),
      .down = AddLinear(prefix + "ffn.down", d.model_dim, d.ffn_dim, residual_stddev),
  };
}

Tensor Gpt2::Block::Forward(Ops& ops, const Tensor& x_TD, const TokenBatch& batch) const {
  const auto linear = [&ops](const Tensor& x, const Affine& a) {
    return ops.Linear(x, *a.weight, a.bias);
  };
  const auto norm = [&ops, this](const Tensor& x, const Affine& a) {
    return ops.LayerNorm(x, *a.weight, *a.bias, norm_eps);
  };
  const Tensor h_TD = norm(x_TD, attention_norm);
  const Tensor mixed =
      ops.Attention(linear(h_TD, q), linear(h_TD, k), linear(h_TD, v), attention, batch);
  const Tensor y_TD = ops.Add(x_TD, linear(mixed, output));
  const Tensor ffn_TD = linear(ops.Gelu(linear(norm(y_TD, ffn_norm), up)), down);
  return ops.Add(y_TD, ffn_TD);
}

Tensor Gpt2::Hidden(Ops& ops, const TokenBatch& batch) const {
  Tensor x_TD = ops.Add(ops.Embedding(*token_embedding_, batch.ids),
                        ops.Embedding(*position_embedding_, batch.positions));
  for (const Block& block : blocks_) {
    // x by value: backward may run the body again after x_TD has moved on.
    x_TD = ops.Checkpoint([&block, &batch, x_TD](Ops& o) { return block.Forward(o, x_TD, batch); });
  }
  if (!batch.all_rows) x_TD = ops.GatherRows(x_TD, batch.output_rows);
  return ops.LayerNorm(x_TD, *final_norm_.weight, *final_norm_.bias, options_.norm_eps);
}

}  // namespace plinth::models
