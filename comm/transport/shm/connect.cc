#include "plinth/comm/transport/shm/connect.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/unique_id.h"
#include "plinth/comm/transport/mailbox.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kDirectory[] = "/dev/shm";
// The id stands in the first bytes of the file; the mailboxes begin after it.
constexpr int64_t kHeaderBytes = 64;

int64_t MebibytesUp(int64_t bytes) { return (bytes + (int64_t{1} << 20) - 1) >> 20; }

struct Segment {
  Fd fd;
  std::shared_ptr<void> map;
  std::byte* bytes() const { return static_cast<std::byte*>(map.get()); }
};

// What rank 0 tells the others.
struct Notice {
  int64_t process = 0;
  int fd = -1;
  int64_t ring_bytes = 0;
  std::string id;
};

std::string Encode(const Notice& n) {
  return absl::StrCat("segment ", n.process, " ", n.fd, " ", n.ring_bytes, " ", n.id);
}

absl::StatusOr<Notice> Decode(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  Notice n;
  in >> word;
  // Rank 0 could not make the segment: its reason is everybody's.
  if (word == "error") return absl::ResourceExhaustedError(absl::StrCat("rank 0:", text.substr(5)));
  in >> n.process >> n.fd >> n.ring_bytes >> n.id;
  if (!in || n.id.size() != kUniqueIdCharacters) {
    return absl::InternalError("shm: malformed notice of rank 0");
  }
  return n;
}

absl::StatusOr<Segment> Map(Fd fd, int64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shm: cannot map ", MebibytesUp(bytes), " MiB: ", std::strerror(errno)));
  }
  return Segment{std::move(fd),
                 std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); })};
}

absl::Status CheckRoom(int64_t bytes) {
  struct statvfs stats {};
  if (statvfs(kDirectory, &stats) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(kDirectory, ": ", std::strerror(errno)));
  }
  const int64_t room = static_cast<int64_t>(stats.f_bavail) * static_cast<int64_t>(stats.f_frsize);
  if (room >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("need ", MebibytesUp(bytes), " MiB in ", kDirectory, ", have ", room >> 20,
                   ": give the container a larger one (--shm-size) or set PLINTH_TRANSPORT=tcp"));
}

absl::StatusOr<Segment> Create(int64_t bytes, const std::string& id) {
  RETURN_IF_ERROR(CheckRoom(bytes));
  Fd fd(open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot create a file in ", kDirectory, ": ", std::strerror(errno)));
  }
  // Takes the pages now: running out later would be a SIGBUS in the middle of an operation.
  const int error = posix_fallocate(fd.get(), 0, bytes);
  if (error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot reserve ", MebibytesUp(bytes), " MiB in ", kDirectory, ": ", std::strerror(error)));
  }
  ASSIGN_OR_RETURN(Segment segment, Map(std::move(fd), bytes));
  std::memcpy(segment.bytes(), id.data(), id.size());
  return segment;
}

absl::StatusOr<Segment> OpenOfRankZero(const Notice& notice, int rank, int64_t bytes) {
  const std::string path = absl::StrCat("/proc/", notice.process, "/fd/", notice.fd);
  constexpr char kAdvice[] =
      "; shm needs one PID namespace and user for all ranks, PLINTH_TRANSPORT=tcp does not";
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::FailedPreconditionError(absl::StrCat("rank ", rank,
                                                      " cannot open the segment of rank 0 at ",
                                                      path, ": ", std::strerror(errno), kAdvice));
  }
  struct stat stats {};
  const absl::Status foreign = absl::FailedPreconditionError(
      absl::StrCat("rank ", rank, ": ", path, " is not the segment of rank 0", kAdvice));
  if (fstat(fd.get(), &stats) != 0 || stats.st_size != bytes) return foreign;
  ASSIGN_OR_RETURN(Segment segment, Map(std::move(fd), bytes));
  if (std::memcmp(segment.bytes(), notice.id.data(), notice.id.size()) != 0) return foreign;
  return segment;
}

absl::StatusOr<Segment> CreateAndPublish(const CommOptions& options, Store& store,
                                         const std::string& key, int64_t ring_bytes,
                                         absl::Time deadline) {
  const std::string id = MakeUniqueId();
  const int64_t bytes = kHeaderBytes + MailboxView::TotalBytes(options.size, ring_bytes);
  absl::StatusOr<Segment> segment = Create(bytes, id);
  if (!segment.ok()) {
    const std::string text = absl::StrCat("error ", segment.status().message());
    RETURN_IF_ERROR(store.Set(key, text, deadline)) << segment.status().message();
    return segment.status();
  }
  MailboxView(segment->bytes() + kHeaderBytes, options.size, ring_bytes).Format();
  const Notice notice{getpid(), segment->fd.get(), ring_bytes, id};
  RETURN_IF_ERROR(store.Set(key, Encode(notice), deadline));
  return segment;
}

bool IsAlive(const RankCell& cell) {
  return ProcessStartTicks(static_cast<pid_t>(cell.process_id.load())) == cell.process_start.load();
}

// Marks this rank as present and waits for the rest, so that from here on each knows whom to
// watch and nobody needs rank 0's descriptor any more.
absl::Status JoinAll(const CommOptions& options, const MailboxView& view, absl::Time deadline) {
  RankCell& own = view.cell(options.rank);
  own.process_start.store(ProcessStartTicks(getpid()).value_or(0));
  own.process_id.store(getpid());
  while (true) {
    std::vector<int> missing;
    for (int rank = 0; rank < options.size; ++rank) {
      if (view.cell(rank).process_id.load() == 0) missing.push_back(rank);
    }
    if (missing.empty()) return absl::OkStatus();
    const std::string absent =
        absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                     " did not join group ", options.group);
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

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> ConnectShm(const CommOptions& options, Store& store,
                                                      absl::Time deadline, int64_t ring_bytes) {
  if (ring_bytes == 0) ring_bytes = MailboxView::DefaultRingBytes(options.size);
  const std::string key = absl::StrCat(options.group, "/shm");
  Segment segment;
  if (options.rank == 0) {
    ASSIGN_OR_RETURN(segment, CreateAndPublish(options, store, key, ring_bytes, deadline));
  } else {
    ASSIGN_OR_RETURN(const std::string text, store.Wait(key, deadline));
    ASSIGN_OR_RETURN(const Notice notice, Decode(text));
    ring_bytes = notice.ring_bytes;
    const int64_t bytes = kHeaderBytes + MailboxView::TotalBytes(options.size, ring_bytes);
    ASSIGN_OR_RETURN(segment, OpenOfRankZero(notice, options.rank, bytes));
  }
  const MailboxView view(segment.bytes() + kHeaderBytes, options.size, ring_bytes);
  RETURN_IF_ERROR(JoinAll(options, view, deadline));
  return std::make_unique<MailboxTransport>("shm", options.rank, view, segment.map,
                                            [view](int peer) { return IsAlive(view.cell(peer)); });
}

}  // namespace plinth::comm
