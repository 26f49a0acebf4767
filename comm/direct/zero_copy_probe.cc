#include "plinth/comm/direct/zero_copy_probe.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/direct/geometry.h"
#include "plinth/comm/direct/stream.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {

absl::StatusOr<absl::Duration> ProbeAllReduce(Transport& transport, const SharedMemory& memory,
                                              int64_t bytes, int repeats, StoreTo store,
                                              absl::Time deadline) {
  CHECK_LE(bytes, memory.bytes());
  CHECK_GE(repeats, 1);
  SharedSpace& space = *transport.shared();
  const int size = transport.size();
  const SharedPlace place = space.PlaceOf(memory.data(), bytes);

  // Places are told by offset: in one address space that is where each rank's memory is.
  std::vector<std::span<const std::byte>> notes;
  if (auto failure = transport.Announce(std::as_bytes(std::span(&place, 1)), notes, deadline)) {
    return absl::UnavailableError(
        absl::StrCat(RankList(failure->ranks), " did not come to the probe"));
  }
  const Share share = ShareOf(bytes, transport.rank(), size);
  std::vector<const void*> sources;
  std::vector<std::byte*> targets;
  for (int rank = 0; rank < size; ++rank) {
    SharedPlace theirs;
    CHECK_EQ(notes[rank].size(), sizeof(theirs));
    std::copy(notes[rank].begin(), notes[rank].end(),
              std::as_writable_bytes(std::span(&theirs, 1)).begin());
    std::byte* data = space.AddressOf(rank, theirs) + share.begin;
    sources.push_back(data);
    targets.push_back(data);
  }
  const auto start = std::chrono::steady_clock::now();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ReduceTo(ReduceOp::kSum, DType::kF32, sources, share.bytes, targets, store);
    FinishStores(store);
  }
  return absl::FromChrono(std::chrono::steady_clock::now() - start) / repeats;
}

}  // namespace plinth::comm
