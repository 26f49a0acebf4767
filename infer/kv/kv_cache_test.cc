#include "plinth/infer/kv/kv_cache.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/cpu/cpu_device.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

class KvCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<KvCache> NewCache(int64_t pages, int64_t page_tokens) {
    auto cache = KvCache::Create(dims_, {.pages = pages, .page_tokens = page_tokens}, allocator_);
    CHECK_OK(cache);
    return *std::move(cache);
  }

  const models::ModelDims dims_{.layers = 3, .kv_heads = 2, .head_dim = 5};
  std::unique_ptr<Device> device_ = CreateCpuDevice();
  CachingAllocator allocator_{device_.get()};
};

TEST_F(KvCacheTest, LayersHaveOneRowPerToken) {
  const std::unique_ptr<KvCache> cache = NewCache(7, 4);
  ASSERT_EQ(cache->layers().size(), 3u);
  for (const models::KvLayer& layer : cache->layers()) {
    EXPECT_EQ(layer.k_rows.shape, Shape({28, 10}));
    EXPECT_EQ(layer.v_rows.shape, Shape({28, 10}));
    EXPECT_NE(layer.k_rows.data, layer.v_rows.data);
  }
  EXPECT_EQ(cache->PagesFor(0), 0);
  EXPECT_EQ(cache->PagesFor(4), 1);
  EXPECT_EQ(cache->PagesFor(5), 2);
}

// Random growth and release: no page belongs to two sequences, none is lost.
TEST_F(KvCacheTest, PagesAreNeverSharedNorLost) {
  constexpr int64_t kPages = 20, kPageTokens = 3;
  const std::unique_ptr<KvCache> cache = NewCache(kPages, kPageTokens);
  std::vector<SequencePages> sequences;
  for (int i = 0; i < 5; ++i) sequences.emplace_back(cache.get());
  std::vector<int64_t> tokens(sequences.size(), 0);
  int refused = 0;
  for (uint64_t step = 0; step < 2000; ++step) {
    const size_t s = RandomBits(1, 0, step) % sequences.size();
    if (RandomBits(1, 1, step) % 6 == 0) {
      sequences[s].Release();
      tokens[s] = 0;
    } else {
      const int64_t want = tokens[s] + static_cast<int64_t>(RandomBits(1, 2, step) % 9);
      const int64_t free_before = cache->free_pages();
      if (sequences[s].Reserve(want)) {
        tokens[s] = want;
      } else {
        ++refused;
        EXPECT_EQ(cache->free_pages(), free_before);
      }
    }
    std::set<int32_t> used;
    size_t count = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      ASSERT_GE(static_cast<int64_t>(sequences[i].pages().size()), cache->PagesFor(tokens[i]));
      used.insert(sequences[i].pages().begin(), sequences[i].pages().end());
      count += sequences[i].pages().size();
    }
    ASSERT_EQ(used.size(), count);
    ASSERT_EQ(cache->free_pages() + static_cast<int64_t>(count), kPages);
  }
  EXPECT_GT(refused, 0);
  sequences.clear();
  EXPECT_EQ(cache->free_pages(), kPages);
}

TEST_F(KvCacheTest, MovingKeepsPages) {
  const std::unique_ptr<KvCache> cache = NewCache(4, 2);
  SequencePages a(cache.get());
  ASSERT_TRUE(a.Reserve(5));
  SequencePages b(std::move(a));
  EXPECT_EQ(b.pages().size(), 3u);
  SequencePages c(cache.get());
  ASSERT_TRUE(c.Reserve(1));
  c = std::move(b);
  EXPECT_EQ(cache->free_pages(), 1);
  c.Release();
  EXPECT_EQ(cache->free_pages(), 4);
}

TEST_F(KvCacheTest, SizesOutOfRangeAreRefused) {
  for (const auto& [pages, page_tokens] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {4, 0}, {int64_t{1} << 40, 16}}) {
    EXPECT_THAT(KvCache::Create(dims_, {.pages = pages, .page_tokens = page_tokens}, allocator_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page_tokens")));
  }
}

TEST_F(KvCacheTest, OutOfMemoryStatesTheBytesAndKeepsNothing) {
  CachingAllocator small(device_.get(), /*limit_bytes=*/1 << 16);
  EXPECT_THAT(KvCache::Create(dims_, {.pages = 100, .page_tokens = 16}, small),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("384000 bytes")));
  EXPECT_EQ(small.stats().live_bytes, 0);
}

}  // namespace
}  // namespace plinth::infer
