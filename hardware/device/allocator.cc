#include "plinth/hardware/device/allocator.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"

namespace plinth {
namespace {
constexpr int64_t kSmallest = 512;
}  // namespace

CachingAllocator::CachingAllocator(Device* device, int64_t limit_bytes)
    : device_(device), limit_bytes_(limit_bytes) {}

CachingAllocator::~CachingAllocator() {
  const std::lock_guard lock(mutex_);
  CHECK_EQ(stats_.live_bytes, 0) << "blocks of " << device_->name() << " outlive their allocator";
  ReleaseCachedLocked();
}

int64_t CachingAllocator::BlockBytes(int64_t bytes) {
  CHECK_GE(bytes, 0);
  if (bytes <= kSmallest) return kSmallest;
  // An eighth of the leading power of two: at most 12.5 % waste, and sizes that differ a
  // little (a batch with a few tokens less) still share blocks.
  const int64_t step = std::max<int64_t>(
      kSmallest, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8);
  return (bytes + step - 1) / step * step;
}

absl::StatusOr<void*> CachingAllocator::Allocate(int64_t bytes) {
  const int64_t block = BlockBytes(bytes);
  const std::lock_guard lock(mutex_);
  void* data = nullptr;
  if (auto it = cached_.find(block); it != cached_.end() && !it->second.empty()) {
    data = it->second.back();
    it->second.pop_back();
  } else {
    if (limit_bytes_ > 0 && stats_.reserved_bytes + block > limit_bytes_) ReleaseCachedLocked();
    if (limit_bytes_ > 0 && stats_.reserved_bytes + block > limit_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(device_->name(), ": wanted ", block, " bytes, but ", stats_.live_bytes,
                       " bytes are in use of a limit of ", limit_bytes_));
    }
    absl::StatusOr<void*> fresh = device_->Allocate(block);
    if (!fresh.ok()) {
      ReleaseCachedLocked();
      fresh = device_->Allocate(block);
    }
    if (!fresh.ok()) return fresh.status();
    data = *fresh;
    stats_.reserved_bytes += block;
  }
  stats_.live_bytes += block;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return data;
}

void CachingAllocator::Free(void* data, int64_t bytes) {
  const int64_t block = BlockBytes(bytes);
  const std::lock_guard lock(mutex_);
  cached_[block].push_back(data);
  stats_.live_bytes -= block;
  CHECK_GE(stats_.live_bytes, 0);
}

AllocatorStats CachingAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void CachingAllocator::ResetPeak() {
  const std::lock_guard lock(mutex_);
  stats_.peak_bytes = stats_.live_bytes;
}

void CachingAllocator::ReleaseCachedLocked() {
  for (auto& [block, list] : cached_) {
    for (void* data : list) device_->Free(data, block);
    stats_.reserved_bytes -= block * static_cast<int64_t>(list.size());
    list.clear();
  }
}

}  // namespace plinth
