#include "plinth/comm/transport/private_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plinth::comm {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kMiB = 1 << 20;

}  // namespace

std::shared_ptr<std::byte> AllocatePages(int64_t bytes) {
  const int64_t pages = std::max<int64_t>(1, (bytes + kPageBytes - 1) / kPageBytes);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, pages * kPageBytes));
  return std::shared_ptr<std::byte>(memory, std::free);
}

absl::StatusOr<SharedMemory> AllocatePrivate(Transport& transport, int64_t bytes,
                                             absl::Time deadline,
                                             std::optional<PeerFailure>& failure) {
  std::shared_ptr<std::byte> memory = AllocatePages(bytes);
  if (memory != nullptr) std::memset(memory.get(), 0, bytes);

  // What this rank asked for in vain.
  const int64_t missing = memory == nullptr ? bytes : 0;
  std::vector<std::span<const std::byte>> notes;
  failure = transport.Announce(std::as_bytes(std::span(&missing, 1)), notes, deadline);
  if (failure.has_value()) return absl::UnavailableError("ranks did not come to allocate");
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    int64_t lacks = 0;
    std::memcpy(&lacks, notes[rank].data(), std::min(notes[rank].size(), sizeof(lacks)));
    if (lacks == 0) continue;
    return absl::ResourceExhaustedError(absl::StrCat("rank ", rank, ": cannot allocate ",
                                                     (lacks + kMiB - 1) / kMiB, " MiB of memory"));
  }
  return SharedMemory(std::move(memory), bytes);
}

}  // namespace plinth::comm
