#include "plinth/hardware/device/sim/sim_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"

namespace plinth {
namespace {

// Blocks are whole pages, so that each can be opened and closed by itself.
int64_t Page() { return sysconf(_SC_PAGESIZE); }
int64_t RoundUp(int64_t bytes) { return (bytes + Page() - 1) / Page() * Page(); }

// Addresses without memory: reading them is a fault.
char* Reserve(int64_t bytes) {
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(base != MAP_FAILED) << "sim: cannot reserve " << bytes
                            << " bytes of addresses: " << std::strerror(errno);
  return static_cast<char*>(base);
}

}  // namespace

SimMemory::SimMemory(int64_t bytes)
    : capacity_(RoundUp(bytes)), device_(Reserve(capacity_)), host_(Reserve(capacity_)) {
  gaps_[0] = capacity_;
}

SimMemory::~SimMemory() {
  CHECK(live_.empty()) << "sim: " << live_.size() << " blocks outlive the device";
  munmap(device_, static_cast<size_t>(capacity_));
  munmap(host_, static_cast<size_t>(capacity_));
}

absl::StatusOr<void*> SimMemory::Allocate(int64_t bytes) {
  CHECK_GE(bytes, 0);
  const int64_t size = RoundUp(std::max<int64_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  // One page more stays closed behind the block.
  const int64_t offset = TakeGapLocked(size + Page());
  if (offset < 0) {
    int64_t largest = 0;
    for (const auto& [begin, gap] : gaps_) largest = std::max(largest, gap - Page());
    return absl::ResourceExhaustedError(absl::StrCat("sim: wanted ", bytes, " bytes, the largest ",
                                                     "free range is ", largest, " bytes of ",
                                                     capacity_));
  }
  if (mprotect(host_ + offset, static_cast<size_t>(size), PROT_READ | PROT_WRITE) != 0) {
    ReturnGapLocked(offset, size + Page());
    return absl::ResourceExhaustedError(
        absl::StrCat("sim: the host refused ", size, " bytes: ", std::strerror(errno)));
  }
  std::memset(host_ + offset, 0xff, static_cast<size_t>(size));
  live_[offset] = size;
  return device_ + offset;
}

void SimMemory::Free(void* device_address, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int64_t offset = static_cast<char*>(device_address) - device_;
  const auto block = live_.find(offset);
  CHECK(block != live_.end()) << "sim: " << device_address << " freed, but is no live block";
  const int64_t size = block->second;
  CHECK_EQ(size, RoundUp(std::max<int64_t>(bytes, 1))) << "sim: size of the freed block";
  live_.erase(block);
  // Gives the memory back to the host, then closes it.
  CHECK_EQ(madvise(host_ + offset, static_cast<size_t>(size), MADV_DONTNEED), 0);
  CHECK_EQ(mprotect(host_ + offset, static_cast<size_t>(size), PROT_NONE), 0);
  ReturnGapLocked(offset, size + Page());
}

void* SimMemory::ToHost(const void* device_address, int64_t bytes) const {
  if (device_address == nullptr) {
    CHECK_EQ(bytes, 0) << "sim: at address nullptr";
    return nullptr;
  }
  const int64_t offset = static_cast<const char*>(device_address) - device_;
  const std::lock_guard lock(mutex_);
  const auto after = live_.upper_bound(offset);
  CHECK(after != live_.begin()) << "sim: " << device_address << " is in no live block";
  const auto& [begin, size] = *std::prev(after);
  CHECK_LE(offset + bytes, begin + size)
      << "sim: " << device_address << " is in no live block of " << bytes << " more bytes";
  return host_ + offset;
}

int64_t SimMemory::TakeGapLocked(int64_t size) {
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                                [size](const auto& entry) { return entry.second >= size; });
  if (gap == gaps_.end()) return -1;
  const auto [offset, available] = *gap;
  gaps_.erase(gap);
  if (available > size) gaps_[offset + size] = available - size;
  return offset;
}

void SimMemory::ReturnGapLocked(int64_t offset, int64_t size) {
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + size) {
    size += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    if (auto& [begin, bytes] = *std::prev(next); begin + bytes == offset) {
      bytes += size;
      return;
    }
  }
  gaps_[offset] = size;
}

}  // namespace plinth
