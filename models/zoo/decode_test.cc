// Decoding with a paged cache gives the bits of one forward pass over the whole sequence.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/models/models.h"
#include "plinth/models/testing/tiny_models.h"

namespace plinth::models {
namespace {

using ::plinth::testing::DeviceTest;

// A paged cache whose pages are handed out in a scrambled order.
class ScrambledCache {
 public:
  ScrambledCache(const ModelDims& dims, int64_t pages, int64_t page_tokens,
                 CachingAllocator& allocator)
      : page_tokens_(page_tokens) {
    for (int32_t page = 0; page < pages; ++page) free_.push_back(page);
    for (size_t i = free_.size(); i > 1; --i) {
      std::swap(free_[i - 1], free_[RandomBits(3, 0, i) % i]);
    }
    const Shape shape({pages * page_tokens, dims.kv_heads * dims.head_dim});
    for (int64_t layer = 0; layer < 2 * dims.layers; ++layer) {
      tensors_.push_back(Tensor::New(allocator, DType::kF32, shape));
    }
    for (size_t i = 0; i < tensors_.size(); i += 2) {
      layers_.push_back({tensors_[i].view(), tensors_[i + 1].view()});
    }
  }

  int32_t TakePage() {
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  const std::vector<KvLayer>& layers() const { return layers_; }
  int64_t page_tokens() const { return page_tokens_; }

 private:
  const int64_t page_tokens_;
  std::vector<int32_t> free_;
  std::vector<Tensor> tensors_;
  std::vector<KvLayer> layers_;
};

struct TestSequence {
  std::vector<int32_t> ids;
  int64_t cached = 0;
  std::vector<int32_t> pages;
  std::vector<float> rows;  // logits, one row for each token fed so far
};

class DecodeTest : public DeviceTest {
 protected:
  // Logits of every position of `ids`, without a cache.
  std::vector<float> Prefill(const LanguageModel& model, Ops& ops,
                             const std::vector<int32_t>& ids) {
    std::vector<int32_t> positions;
    for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int32_t>(i));
    const std::vector<int32_t> starts = {0, static_cast<int32_t>(ids.size())};
    return Download<float>(
        model.Logits(ops, {.ids = ids, .positions = positions, .seq_starts = starts}));
  }

  // One pass over the next `counts[s]` tokens of each sequence.
  void Feed(const LanguageModel& model, Ops& ops, ScrambledCache& cache,
            std::vector<TestSequence>& sequences, const std::vector<int64_t>& counts) {
    std::vector<int32_t> ids, positions, starts = {0}, past, table;
    const int64_t max_pages = model.dims().max_positions;
    for (size_t s = 0; s < sequences.size(); ++s) {
      TestSequence& sequence = sequences[s];
      const int64_t end = sequence.cached + counts[s];
      while (static_cast<int64_t>(sequence.pages.size()) * cache.page_tokens() < end) {
        sequence.pages.push_back(cache.TakePage());
      }
      for (int64_t p = sequence.cached; p < end; ++p) {
        ids.push_back(sequence.ids[static_cast<size_t>(p)]);
        positions.push_back(static_cast<int32_t>(p));
      }
      starts.push_back(static_cast<int32_t>(ids.size()));
      past.push_back(static_cast<int32_t>(sequence.cached));
      table.insert(table.end(), sequence.pages.begin(), sequence.pages.end());
      table.resize((s + 1) * static_cast<size_t>(max_pages), -1);
    }
    const KvView kv{.layers = cache.layers(),
                    .page_tokens = cache.page_tokens(),
                    .max_pages = max_pages,
                    .page_table = table,
                    .past = past};
    const std::vector<float> logits = Download<float>(
        model.Logits(ops, {.ids = ids, .positions = positions, .seq_starts = starts, .kv = &kv}));
    auto row = logits.begin();
    for (size_t s = 0; s < sequences.size(); ++s) {
      const auto end = row + counts[s] * model.dims().vocab_size;
      sequences[s].rows.insert(sequences[s].rows.end(), row, end);
      sequences[s].cached += counts[s];
      row = end;
    }
  }
};

TEST_P(DecodeTest, AnySplitIntoPassesEqualsPrefillBitForBit) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    const auto model = testing::TinyModel(architecture, 5, allocator(), stream());
    for (const int64_t page_tokens : {1, 3, 16}) {
      for (const bool packed : {false, true}) {
        SCOPED_TRACE(config::Architecture_Name(architecture) + ", pages of " +
                     std::to_string(page_tokens) + (packed ? ", packed" : ""));
        EagerOps plain(ctx()), packing(ctx(), DType::kF32);
        EagerOps& ops = packed ? packing : plain;
        ScrambledCache cache(model->dims(), 300 / page_tokens + 4, page_tokens, allocator());
        std::vector<TestSequence> sequences;
        for (const int64_t length : {1, 17, 70, 33}) {
          sequences.push_back({.ids = testing::RandomIds(length, model->dims().vocab_size,
                                                         static_cast<uint64_t>(length))});
        }
        for (uint64_t pass = 0; pass < 400; ++pass) {
          // Sequence 1 decodes one token at a time; the others take chunks or rest.
          std::vector<int64_t> counts;
          for (size_t s = 0; s < sequences.size(); ++s) {
            const int64_t left =
                static_cast<int64_t>(sequences[s].ids.size()) - sequences[s].cached;
            const int64_t chunk = s == 1 ? 1 : static_cast<int64_t>(RandomBits(9, s, pass) % 13);
            counts.push_back(std::min(left, chunk));
          }
          if (std::ranges::count(counts, 0) == 4) continue;
          Feed(*model, ops, cache, sequences, counts);
        }
        for (const TestSequence& sequence : sequences) {
          ASSERT_EQ(sequence.cached, static_cast<int64_t>(sequence.ids.size()));
          ASSERT_EQ(sequence.rows, Prefill(*model, plain, sequence.ids));
        }
      }
    }
  }
}

TEST_P(DecodeTest, OutputRowsAreTheSameRowsOfAll) {
  for (const config::Architecture architecture : {config::GPT2, config::LLAMA}) {
    const auto model = testing::TinyModel(architecture, 6, allocator(), stream());
    EagerOps ops(ctx());
    const std::vector<int32_t> ids = testing::RandomIds(9, model->dims().vocab_size, 1);
    const std::vector<int32_t> positions = {0, 1, 2, 3, 0, 1, 2, 3, 4}, starts = {0, 4, 9};
    const std::vector<int32_t> rows = {8, 3, 0};
    TokenBatch batch{.ids = ids, .positions = positions, .seq_starts = starts};
    const std::vector<float> all = Download<float>(model->Logits(ops, batch));
    batch.output_rows = rows;
    batch.all_rows = false;
    const std::vector<float> some = Download<float>(model->Logits(ops, batch));
    std::vector<float> expected;
    for (const int32_t row : rows) {
      const auto begin = all.begin() + row * model->dims().vocab_size;
      expected.insert(expected.end(), begin, begin + model->dims().vocab_size);
    }
    EXPECT_EQ(some, expected);
    batch.output_rows = {};
    EXPECT_EQ(model->Logits(ops, batch).shape(), Shape({0, model->dims().vocab_size}));
  }
}

// bf16 rounds a weight by at most 2^-9 of itself. Far from equal bits, close in value.
TEST_P(DecodeTest, Bf16WeightsStayClose) {
  const auto model = testing::TinyModel(config::LLAMA, 8, allocator(), stream());
  EagerOps f32(ctx()), bf16(ctx(), DType::kBf16);
  const std::vector<int32_t> ids = testing::RandomIds(30, model->dims().vocab_size, 2);
  const std::vector<float> exact = Prefill(*model, f32, ids);
  const std::vector<float> rounded = Prefill(*model, bf16, ids);
  ASSERT_NE(exact, rounded);
  double error = 0, norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += (exact[i] - rounded[i]) * (exact[i] - rounded[i]);
    norm += exact[i] * exact[i];
  }
  // 22 products in a row (7 in each of 3 layers, and the head), each off by 2^-9 at most.
  EXPECT_LT(error, norm * 22 * 22 / (512.0 * 512.0));
}

TEST_P(DecodeTest, InitialValuesDependOnSeedAndNameOnly) {
  ASSERT_OK_AND_ASSIGN(const auto model, CreateModel(testing::TinyConfig(config::GPT2)));
  Initialize(*model, 42, allocator(), stream());
  const uint64_t key = RngKey(42, "init/layers.1.ffn.down.weight");
  for (const Parameter* p : model->parameters()) {
    const std::vector<float> values = Download<float>(p->value());
    if (p->name() == "final_norm.weight") {
      EXPECT_THAT(values, ::testing::Each(1.0f));
    } else if (p->name() == "final_norm.bias") {
      EXPECT_THAT(values, ::testing::Each(0.0f));
    } else if (p->name() == "layers.1.ffn.down.weight") {
      // Residual projections: 0.02 / sqrt(2 * 3 layers).
      EXPECT_DOUBLE_EQ(p->init().stddev, 0.02 / std::sqrt(6.0));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], static_cast<float>(p->init().stddev * RandomNormal(key, 0, i)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DecodeTest, ::testing::ValuesIn(plinth::testing::TestedDevices()),
                         plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::models
