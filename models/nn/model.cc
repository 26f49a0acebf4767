#include "plinth/models/nn/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plinth/hardware/base/rng.h"

namespace plinth::models {
namespace {

// Elements made on the host at a time: bounds memory, and keeps the copy in cache.
constexpr int64_t kChunk = int64_t{1} << 18;

class Filler {
 public:
  Filler(const Init& init, uint64_t key) : init_(init), key_(key) {}

  float operator()(int64_t element) const {
    switch (init_.kind) {
      case Init::Kind::kZeros:
        return 0;
      case Init::Kind::kOnes:
        return 1;
      case Init::Kind::kNormal:
        break;
    }
    const double draw = RandomNormal(key_, 0, static_cast<uint64_t>(element));
    return static_cast<float>(init_.stddev * draw);
  }

 private:
  const Init& init_;
  const uint64_t key_;
};

}  // namespace

AttentionSpec AttentionOf(const ModelDims& dims, int64_t layer) {
  return {.layer = layer,
          .heads = dims.heads,
          .kv_heads = dims.kv_heads,
          .head_dim = dims.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(dims.head_dim))};
}

double ResidualInitStddev(const ModelDims& dims) {
  return kInitStddev / std::sqrt(2.0 * static_cast<double>(dims.layers));
}

Parameter& LanguageModel::Add(std::string name, const Shape& shape, Init init, bool decays) {
  owned_.push_back(std::make_unique<Parameter>(std::move(name), shape, init, decays));
  parameters_.push_back(owned_.back().get());
  return *owned_.back();
}

void Initialize(LanguageModel& model, uint64_t seed, CachingAllocator& allocator, Stream& stream) {
  std::vector<float> chunk;
  for (Parameter* parameter : model.parameters()) {
    const Filler fill(parameter->init(), RngKey(seed, "init/" + parameter->name()));
    Tensor value = Tensor::New(allocator, DType::kF32, parameter->shape());
    const int64_t elements = value.elements();
    for (int64_t begin = 0; begin < elements; begin += kChunk) {
      const int64_t count = std::min(kChunk, elements - begin);
      chunk.resize(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) chunk[static_cast<size_t>(i)] = fill(begin + i);
      stream.CopyIn(value.view().ptr<float>() + begin, chunk.data(),
                    count * static_cast<int64_t>(sizeof(float)));
    }
    parameter->set_value(std::move(value));
  }
}

}  // namespace plinth::models
