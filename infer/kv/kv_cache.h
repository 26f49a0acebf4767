// KvCache: keys and values of many sequences in pages of one device block per layer.
//
// A page holds `page_tokens` consecutive positions of one sequence in every layer. Pages
// are handed out one at a time, so a sequence occupies at most page_tokens - 1 rows more
// than it has tokens, and none of the memory is ever moved.
#ifndef PLINTH_INFER_KV_KV_CACHE_H_
#define PLINTH_INFER_KV_KV_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/tensor/dtype.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/nn/token_batch.h"

namespace plinth::infer {

struct KvCacheOptions {
  int64_t pages = 0;          // > 0
  int64_t page_tokens = 0;    // > 0
  DType dtype = DType::kF32;  // or kBf16
};

// Used by one thread at a time.
class KvCache {
 public:
  // kInvalidArgument for sizes out of range (rows must be countable in 32 bits);
  // kResourceExhausted states the bytes wanted. The allocator outlives the cache.
  static absl::StatusOr<std::unique_ptr<KvCache>> Create(const models::ModelDims& dims,
                                                         const KvCacheOptions& options,
                                                         CachingAllocator& allocator);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  int64_t total_pages() const { return options_.pages; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t page_tokens() const { return options_.page_tokens; }
  // Pages that `tokens` positions occupy.
  int64_t PagesFor(int64_t tokens) const;

  // What models read: one entry for each layer.
  std::span<const models::KvLayer> layers() const { return layers_; }

 private:
  friend class SequencePages;
  KvCache(const KvCacheOptions& options, CachingAllocator& allocator)
      : options_(options), allocator_(allocator) {}

  const KvCacheOptions options_;
  CachingAllocator& allocator_;
  std::vector<int32_t> free_;  // a stack: pages used last are warm
  std::vector<models::KvLayer> layers_;
  std::vector<void*> blocks_;  // of layers_, in order k, v
  int64_t block_bytes_ = 0;
};

// The pages of one sequence, in the order of its positions. Movable; pages go back to the
// cache, which outlives it, on destruction.
class SequencePages {
 public:
  explicit SequencePages(KvCache* cache) : cache_(cache) {}
  ~SequencePages() { Release(); }
  SequencePages(SequencePages&& other) noexcept;
  SequencePages& operator=(SequencePages&& other) noexcept;

  // Takes pages until `tokens` positions fit. False, and nothing taken, if too few are free.
  bool Reserve(int64_t tokens);
  void Release();

  std::span<const int32_t> pages() const { return pages_; }

 private:
  KvCache* cache_;
  std::vector<int32_t> pages_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_KV_KV_CACHE_H_
