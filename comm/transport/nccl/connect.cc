#include "plinth/comm/transport/nccl/connect.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/rank_list.h"
#include "plinth/comm/transport/nccl/backend.h"
#include "plinth/comm/transport/nccl/gpu.h"
#include "plinth/comm/transport/nccl/library.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr absl::Duration kPollEvery = absl::Milliseconds(1);

// What each rank tells the others before NCCL is asked to connect. Texts end with a zero.
struct Notice {
  int32_t version = 0;  // of NCCL
  int32_t code = 0;     // of the status that keeps this rank from going on
  NcclUniqueId id{};    // rank 0's counts
  char gpu[256] = {};   // "host 0000:3b:00.0"
  char problem[1000] = {};
};
static_assert(sizeof(Notice) <= kMostNoteBytes);

template <size_t kBytes>
void SetText(char (&text)[kBytes], const std::string& value) {
  std::memcpy(text, value.data(), std::min(value.size(), kBytes - 1));
}
// Bytes of a peer: they need not end with a zero.
template <size_t kBytes>
std::string TextOf(const char (&text)[kBytes]) {
  return std::string(text, strnlen(text, kBytes));
}

std::string HostName() {
  char name[128] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? std::string(name) : std::string();
}

// What this rank can do alone.
absl::Status Prepare(const CommOptions& options, const NcclFiles& files, NcclGroup& group,
                     Notice& notice) {
  ASSIGN_OR_RETURN(group.nccl, LoadNccl(files.nccl));
  notice.version = group.nccl.version;
  ASSIGN_OR_RETURN(group.gpu, GpuStream::Create(options.device, files.driver));
  SetText(notice.gpu, absl::StrCat(HostName(), " ", group.gpu->address()));
  if (options.rank != 0) return absl::OkStatus();
  const int result = group.nccl.GetUniqueId(&notice.id);
  if (result == kNcclSuccess) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("nccl: cannot make an id: ", NcclResultText(group.nccl, result, nullptr)));
}

// All ranks see all notices, so all come to the same verdict.
absl::Status CheckNotices(const std::vector<Notice>& notices) {
  std::map<std::string, int> gpus;
  for (int rank = 0; rank < static_cast<int>(notices.size()); ++rank) {
    const Notice& notice = notices[rank];
    if (notice.code != 0) {
      return absl::Status(static_cast<absl::StatusCode>(notice.code),
                          absl::StrCat("rank ", rank, ": ", TextOf(notice.problem)));
    }
    if (notice.version != notices[0].version) {
      return absl::FailedPreconditionError(
          absl::StrCat("nccl: rank ", rank, " has version ", NcclVersionText(notice.version),
                       ", rank 0 has ", NcclVersionText(notices[0].version)));
    }
    const auto [found, is_new] = gpus.emplace(TextOf(notice.gpu), rank);
    if (!is_new) {
      return absl::FailedPreconditionError(
          absl::StrCat("nccl: ranks ", found->second, " and ", rank, " are bound to one GPU, ",
                       found->first, ": give each a CommOptions::device of its own"));
    }
  }
  return absl::OkStatus();
}

absl::Status Describe(const PeerFailure& failure, const CommOptions& options) {
  const std::string ranks = RankList(failure.ranks);
  switch (failure.kind) {
    case PeerFailure::Kind::kAborted:
      return absl::AbortedError(absl::StrCat("aborted by ", ranks, ": ", failure.detail));
    case PeerFailure::Kind::kLate:
      return absl::DeadlineExceededError(absl::StrCat("nccl: ", ranks, " did not join within ",
                                                      absl::FormatDuration(options.timeout)));
    case PeerFailure::Kind::kGone:
      return absl::UnavailableError(
          absl::StrCat("nccl: ", ranks, " did not join: process is gone"));
    case PeerFailure::Kind::kLeft:
      return absl::UnavailableError(
          absl::StrCat("nccl: ", ranks, " did not join: it has left the group"));
    case PeerFailure::Kind::kElsewhere:
      return absl::FailedPreconditionError(
          absl::StrCat("nccl: ", ranks, " did not join: it called something else"));
  }
  return absl::InternalError("nccl: a failure of no known kind");
}

absl::StatusOr<std::vector<Notice>> ShareNotices(const CommOptions& options, Transport& transport,
                                                 const Notice& own, absl::Time deadline) {
  std::vector<std::span<const std::byte>> notes;
  const auto bytes = std::as_bytes(std::span(&own, 1));
  if (const auto failure = transport.Announce(bytes, notes, deadline)) {
    const absl::Status status = Describe(*failure, options);
    if (!absl::IsAborted(status)) transport.Abort(std::string(status.message()));
    return status;
  }
  std::vector<Notice> notices(notes.size());
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    if (notes[rank].size() != sizeof(Notice)) return absl::InternalError("nccl: malformed notice");
    std::memcpy(&notices[rank], notes[rank].data(), sizeof(Notice));
  }
  return notices;
}

// NCCL connects in the background; a rank that fails aborts the transport, which others see here.
absl::Status AwaitConnected(const CommOptions& options, Transport& transport,
                            const NcclGroup& group, absl::Time deadline) {
  while (true) {
    int state = kNcclSuccess;
    const int asked = group.nccl.CommGetAsyncError(group.comm, &state);
    if (asked != kNcclSuccess) state = asked;
    if (state == kNcclSuccess) return absl::OkStatus();
    if (state != kNcclInProgress) {
      return absl::UnavailableError(absl::StrCat("rank ", options.rank, " cannot connect NCCL: ",
                                                 NcclResultText(group.nccl, state, group.comm)));
    }
    if (const auto failure = transport.FindFailure()) return Describe(*failure, options);
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", options.rank, ": NCCL did not connect within ",
          absl::FormatDuration(options.timeout), " (NCCL_DEBUG=INFO makes it tell more)"));
    }
    absl::SleepFor(kPollEvery);
  }
}

absl::Status ConnectRanks(const CommOptions& options, Transport& transport, const NcclUniqueId& id,
                          NcclGroup& group, absl::Time deadline) {
  NcclConfig config;
  RETURN_IF_ERROR(group.gpu->Use());
  const int result =
      group.nccl.CommInitRankConfig(&group.comm, options.size, id, options.rank, &config);
  if (result != kNcclSuccess && result != kNcclInProgress) {
    return absl::UnavailableError(absl::StrCat("rank ", options.rank, " cannot connect NCCL: ",
                                               NcclResultText(group.nccl, result, group.comm)));
  }
  RETURN_IF_ERROR(AwaitConnected(options, transport, group, deadline));
  // Only when all are connected is the group formed.
  std::vector<std::span<const std::byte>> notes;
  if (const auto failure = transport.Announce({}, notes, deadline)) {
    return Describe(*failure, options);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> ConnectNccl(const CommOptions& options,
                                                     Transport& transport, absl::Time deadline,
                                                     const NcclFiles& files) {
  NcclGroup group;
  Notice own;
  if (const absl::Status status = Prepare(options, files, group, own); !status.ok()) {
    own.code = static_cast<int32_t>(status.code());
    SetText(own.problem, std::string(status.message()));
  }
  ASSIGN_OR_RETURN(const std::vector<Notice> notices,
                   ShareNotices(options, transport, own, deadline));
  RETURN_IF_ERROR(CheckNotices(notices));
  const absl::Status connected = ConnectRanks(options, transport, notices[0].id, group, deadline);
  if (!connected.ok()) {
    if (!absl::IsAborted(connected)) transport.Abort(std::string(connected.message()));
    if (group.comm != nullptr) group.nccl.CommAbort(group.comm);
    return connected;
  }
  return std::make_unique<NcclBackend>(std::move(group), transport);
}

}  // namespace plinth::comm
