#include "plinth/comm/transport/shm/shared_files.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kAdvice[] = "give the container a larger one (--shm-size) or register less";

// What a rank says of its part: where it is, or why there is none.
struct PartNote {
  absl::StatusCode code = absl::StatusCode::kOk;
  SegmentAddress address;
  char reason[512] = {};  // ends with a zero

  void SetError(const absl::Status& status) {
    code = status.code();
    const size_t bytes = std::min(status.message().size(), sizeof(reason) - 1);
    std::memcpy(reason, status.message().data(), bytes);
  }
};
static_assert(std::is_trivially_copyable_v<PartNote> && sizeof(PartNote) <= kMostNoteBytes);

// Tells all ranks of this rank's part and learns of theirs. The error of the lowest rank that has
// one, on every rank alike.
absl::StatusOr<std::vector<PartNote>> Tell(Transport& transport, const PartNote& own,
                                           absl::Time deadline,
                                           std::optional<PeerFailure>& failure) {
  std::vector<std::span<const std::byte>> notes;
  failure = transport.Announce(std::as_bytes(std::span(&own, 1)), notes, deadline);
  if (failure.has_value()) return absl::UnavailableError("ranks did not come");
  std::vector<PartNote> parts(notes.size());
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    CHECK_EQ(notes[rank].size(), sizeof(PartNote));
    std::memcpy(&parts[rank], notes[rank].data(), sizeof(PartNote));
  }
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].code == absl::StatusCode::kOk) continue;
    return absl::Status(parts[rank].code, absl::StrCat("rank ", rank, ": ", parts[rank].reason));
  }
  return parts;
}

}  // namespace

SharedFiles::SharedFiles(std::vector<pid_t> processes)
    : processes_(std::move(processes)), table_(std::make_shared<Table>()) {}

absl::StatusOr<SharedMemory> SharedFiles::Allocate(Transport& transport, int64_t bytes,
                                                   absl::Time deadline,
                                                   std::optional<PeerFailure>& failure) {
  CHECK_GE(bytes, 0);
  auto region = std::make_unique<Region>();
  region->id = ++regions_;
  region->own_bytes = bytes;
  region->parts.resize(transport.size());

  PartNote own;
  Segment segment;
  if (bytes > 0) {
    absl::StatusOr<Segment> made = CreateSegment(bytes, kAdvice);
    if (made.ok()) {
      segment = *std::move(made);
      own.address = plinth::comm::AddressOf(segment, bytes);
      region->parts[transport.rank()] = segment.map;
    } else {
      own.SetError(made.status());
    }
  }
  ASSIGN_OR_RETURN(const std::vector<PartNote> parts, Tell(transport, own, deadline, failure));
  PartNote opened;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank() || parts[rank].address.bytes == 0) continue;
    absl::StatusOr<Segment> part = OpenSegment(parts[rank].address);
    if (!part.ok()) {
      opened.SetError(part.status());
      break;
    }
    region->parts[rank] = std::move(part->map);
  }
  // Also: from here on nobody needs this rank's descriptor.
  RETURN_IF_ERROR(Tell(transport, opened, deadline, failure).status());

  std::byte* const data = region->parts[transport.rank()].get();
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + bytes;
  {
    std::lock_guard lock(table_->mutex);
    if (bytes > 0) table_->held.emplace(end, region.get());
    table_->by_id.emplace(region->id, region.get());
  }
  const auto let_go = [table = table_, end](Region* r) {
    {
      std::lock_guard lock(table->mutex);
      if (r->own_bytes > 0) table->held.erase(end);
      table->by_id.erase(r->id);
    }
    delete r;
  };
  const std::shared_ptr<Region> shared(region.release(), let_go);
  return SharedMemory(std::shared_ptr<std::byte>(shared, data), bytes);
}

SharedPlace SharedFiles::PlaceOf(const void* data, int64_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(table_->mutex);
  const auto next = table_->held.upper_bound(address);
  if (next == table_->held.end()) return {};
  const uintptr_t begin = next->first - next->second->own_bytes;
  if (address < begin || address + bytes > next->first) return {};
  return {next->second->id, address - begin};
}

std::byte* SharedFiles::AddressOf(int rank, const SharedPlace& place) const {
  std::lock_guard lock(table_->mutex);
  const auto region = table_->by_id.find(place.region);
  CHECK(region != table_->by_id.end()) << "region " << place.region << " is not held here";
  return region->second->parts[rank].get() + place.offset;
}

std::optional<PeerFailure> SharedFiles::ReadPeer(int rank, uint64_t address, int64_t bytes,
                                                 void* to) {
  if (CopyFromProcess(processes_[rank], address, bytes, to)) return std::nullopt;
  return PeerFailure{PeerFailure::Kind::kGone, {rank}, ""};
}

}  // namespace plinth::comm
