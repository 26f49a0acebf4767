#include "plinth/comm/transport/shm/connect.h"

#include <unistd.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/transport/mailbox/layout.h"
#include "plinth/comm/transport/mailbox/mailbox.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/comm/transport/shm/segment.h"
#include "plinth/comm/transport/shm/shared_files.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kAdvice[] =
    "give the container a larger one (--shm-size) or set PLINTH_TRANSPORT=tcp";

// What rank 0 tells the others.
struct Notice {
  SegmentAddress address;
  MailboxSizes sizes;
};

std::string Encode(const Notice& n) {
  return absl::StrCat("segment ", n.address.process, " ", n.address.fd, " ", n.address.device, " ",
                      n.address.inode, " ", n.address.bytes, " ", n.sizes.ring_bytes, " ",
                      n.sizes.staging_bytes);
}

absl::StatusOr<Notice> Decode(const std::string& text, int ranks) {
  std::istringstream in(text);
  std::string word;
  Notice n;
  in >> word;
  // Rank 0 could not make the segment: its reason is everybody's.
  if (word == "error") return absl::ResourceExhaustedError(absl::StrCat("rank 0:", text.substr(5)));
  SegmentAddress& a = n.address;
  in >> a.process >> a.fd >> a.device >> a.inode >> a.bytes;
  in >> n.sizes.ring_bytes >> n.sizes.staging_bytes;
  n.sizes.ranks = ranks;
  if (!in || n.sizes.TotalBytes() != a.bytes) {
    return absl::InternalError("shm: malformed notice of rank 0");
  }
  return n;
}

absl::StatusOr<Segment> CreateAndPublish(const MailboxSizes& sizes, Store& store,
                                         const std::string& key, absl::Time deadline) {
  absl::StatusOr<Segment> segment = CreateSegment(sizes.TotalBytes(), kAdvice);
  if (!segment.ok()) {
    const std::string text = absl::StrCat("error ", segment.status().message());
    RETURN_IF_ERROR(store.Set(key, text, deadline)) << segment.status().message();
    return segment.status();
  }
  MailboxView(segment->map.get(), sizes).Format();
  const Notice notice{AddressOf(*segment, sizes.TotalBytes()), sizes};
  RETURN_IF_ERROR(store.Set(key, Encode(notice), deadline));
  return segment;
}

bool IsAlive(const RankCell& cell) {
  return ProcessStartTicks(static_cast<pid_t>(cell.process_id.load())) == cell.process_start.load();
}

// Until `joined` holds for the cells of all ranks.
template <typename Joined>
absl::Status AwaitAll(const CommOptions& options, const MailboxView& view, const Joined& joined,
                      absl::Time deadline) {
  while (true) {
    std::vector<int> missing;
    for (int rank = 0; rank < options.size; ++rank) {
      if (!joined(view.cell(rank))) missing.push_back(rank);
    }
    if (missing.empty()) return absl::OkStatus();
    const std::string absent =
        absl::StrCat(RankList(missing), " did not join group ", options.group);
    for (int rank = 0; rank < options.size; ++rank) {
      if (view.cell(rank).process_id.load() == 0 || IsAlive(view.cell(rank))) continue;
      // It may have died, or have given up waiting for those that are named first.
      return absl::UnavailableError(
          absl::StrCat(absent, ", and rank ", rank, " did not stay: process is gone"));
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(absent, " within ", absl::FormatDuration(options.timeout)));
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// Marks this rank as present and waits for the rest, so that from here on each knows whom to
// watch and nobody needs rank 0's descriptor any more. Then all try to read each other's memory,
// which a container or the system may forbid. The processes if everybody can.
absl::StatusOr<std::vector<pid_t>> JoinAll(const CommOptions& options, const MailboxView& view,
                                           absl::Time deadline) {
  RankCell& own = view.cell(options.rank);
  const auto known = static_cast<uint64_t>(ProcessStartTicks(getpid()).value_or(0));
  own.process_start.store(static_cast<int64_t>(known));
  own.known_address.store(reinterpret_cast<uintptr_t>(&known));
  own.process_id.store(getpid());
  RETURN_IF_ERROR(AwaitAll(
      options, view, [](const RankCell& cell) { return cell.process_id.load() != 0; }, deadline));

  std::vector<pid_t> processes;
  bool reads_all = true;
  for (int rank = 0; rank < options.size && reads_all; ++rank) {
    const RankCell& cell = view.cell(rank);
    processes.push_back(static_cast<pid_t>(cell.process_id.load()));
    uint64_t word = 0;
    reads_all = CopyFromProcess(processes.back(), cell.known_address.load(), sizeof(word), &word) &&
                word == static_cast<uint64_t>(cell.process_start.load());
  }
  own.reads.store(reads_all ? PeerReads::kAll : PeerReads::kNotAll);
  RETURN_IF_ERROR(AwaitAll(
      options, view, [](const RankCell& cell) { return cell.reads.load() != PeerReads::kUntried; },
      deadline));
  for (int rank = 0; rank < options.size; ++rank) {
    if (view.cell(rank).reads.load() != PeerReads::kAll) return std::vector<pid_t>();
  }
  return processes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> ConnectShm(const CommOptions& options, Store& store,
                                                      absl::Time deadline, int64_t ring_bytes) {
  MailboxSizes sizes = MailboxSizes::Default(options.size);
  if (ring_bytes != 0) sizes.ring_bytes = ring_bytes;
  const std::string key = absl::StrCat(options.group, "/shm");
  Segment segment;
  if (options.rank == 0) {
    ASSIGN_OR_RETURN(segment, CreateAndPublish(sizes, store, key, deadline));
  } else {
    ASSIGN_OR_RETURN(const std::string text, store.Wait(key, deadline));
    ASSIGN_OR_RETURN(const Notice notice, Decode(text, options.size));
    sizes = notice.sizes;
    absl::StatusOr<Segment> opened = OpenSegment(notice.address);
    RETURN_IF_ERROR(opened.status()) << "rank " << options.rank << ", segment of rank 0";
    segment = *std::move(opened);
  }
  const MailboxView view(segment.map.get(), sizes);
  ASSIGN_OR_RETURN(std::vector<pid_t> processes, JoinAll(options, view, deadline));
  return std::make_unique<MailboxTransport>(
      "shm", options.rank, view, segment.map, [view](int peer) { return IsAlive(view.cell(peer)); },
      std::make_unique<SharedFiles>(std::move(processes)));
}

}  // namespace plinth::comm
