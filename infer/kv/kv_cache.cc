#include "plinth/infer/kv/kv_cache.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::infer {

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::Create(const models::ModelDims& dims,
                                                         const KvCacheOptions& options,
                                                         CachingAllocator& allocator) {
  constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();
  CHECK(options.dtype == DType::kF32 || options.dtype == DType::kBf16) << options.dtype;
  if (options.page_tokens <= 0 || options.pages <= 0 ||
      options.pages > kMaxRows / options.page_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key/value cache: pages and page_tokens must be > 0 and hold at most ", kMaxRows,
        " tokens, got ", options.pages, " pages of ", options.page_tokens, " tokens"));
  }
  const int64_t width = dims.kv_dim();
  const int64_t rows = options.pages * options.page_tokens;
  const int64_t row_bytes = width * DTypeSize(options.dtype);
  if (row_bytes > std::numeric_limits<int64_t>::max() / rows / (2 * dims.layers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key/value cache: ", rows, " tokens of ", row_bytes, " bytes overflow"));
  }
  std::unique_ptr<KvCache> cache(new KvCache(options, allocator));
  cache->block_bytes_ = rows * row_bytes;
  const auto allocate = [&]() -> absl::StatusOr<TensorView> {
    ASSIGN_OR_RETURN(void* data, allocator.Allocate(cache->block_bytes_),
                     _ << "key/value cache of " << rows << " tokens in " << dims.layers
                       << " layers (" << 2 * dims.layers * cache->block_bytes_
                       << " bytes; fewer kv_tokens need less)");
    cache->blocks_.push_back(data);
    return TensorView::Contiguous(data, options.dtype, {rows, width});
  };
  for (int64_t layer = 0; layer < dims.layers; ++layer) {
    ASSIGN_OR_RETURN(const TensorView k, allocate());
    ASSIGN_OR_RETURN(const TensorView v, allocate());
    cache->layers_.push_back({.k_rows = k, .v_rows = v});
  }
  for (int64_t page = options.pages; page > 0; --page) {
    cache->free_.push_back(static_cast<int32_t>(page - 1));
  }
  return cache;
}

KvCache::~KvCache() {
  for (void* block : blocks_) allocator_.Free(block, block_bytes_);
}

int64_t KvCache::PagesFor(int64_t tokens) const {
  return (tokens + options_.page_tokens - 1) / options_.page_tokens;
}

SequencePages::SequencePages(SequencePages&& other) noexcept
    : cache_(other.cache_), pages_(std::exchange(other.pages_, {})) {}

SequencePages& SequencePages::operator=(SequencePages&& other) noexcept {
  if (this != &other) {
    Release();
    cache_ = other.cache_;
    pages_ = std::exchange(other.pages_, {});
  }
  return *this;
}

bool SequencePages::Reserve(int64_t tokens) {
  const int64_t wanted = cache_->PagesFor(tokens) - static_cast<int64_t>(pages_.size());
  if (wanted > cache_->free_pages()) return false;
  for (int64_t i = 0; i < wanted; ++i) {
    pages_.push_back(cache_->free_.back());
    cache_->free_.pop_back();
  }
  return true;
}

void SequencePages::Release() {
  // Backwards, so that the next sequence gets them in the same order.
  for (auto page = pages_.rbegin(); page != pages_.rend(); ++page) {
    cache_->free_.push_back(*page);
  }
  pages_.clear();
}

}  // namespace plinth::infer
