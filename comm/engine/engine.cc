#include "plinth/comm/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/engine/inline.h"
#include "plinth/comm/transport/private_memory.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {

namespace {

// A few milliseconds behind at most, which a deadline can bear, and read in a tenth of the time.
absl::Time CoarseNow() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return absl::TimeFromTimespec(now);
}

Backend* OwnerAmong(const std::vector<std::unique_ptr<Backend>>& backends) {
  for (const std::unique_ptr<Backend>& backend : backends) {
    if (backend->OwnsBuffers()) return backend.get();
  }
  return nullptr;
}

}  // namespace

CollectiveEngine::CollectiveEngine(std::unique_ptr<Transport> transport, GroupInfo group,
                                   EngineOptions options)
    : transport_(std::move(transport)),
      group_(std::move(group)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      timeout_(options.timeout),
      note_payload_bytes_(std::min(options.note_payload_bytes, kMostPayloadBytes)),
      backends_(std::move(options.backends)),
      owner_(OwnerAmong(backends_)),
      observer_(std::move(options.observer)),
      pairs_(transport_.get(), &group_, &heads_),
      heads_(size_),
      lists_(size_),
      description_bytes_(size_ * kMostDescriptionBytes),
      descriptions_(size_),
      payloads_(size_) {
  CHECK_EQ(group_.size(), size_);
  notes_.reserve(size_);
  if (observer_ != nullptr) observed_group_ = observer_->GroupFormed(group_);
}

CollectiveEngine::~CollectiveEngine() {
  if (observer_ != nullptr) observer_->GroupEnded(observed_group_);
}

void CollectiveEngine::Leaving() {
  if (observer_ != nullptr) observer_->GroupLeaving(observed_group_);
}

uint64_t CollectiveEngine::Observe(const CollectiveCall& call) {
  return observer_ == nullptr ? 0 : observer_->Queued(observed_group_, call);
}

absl::Status CollectiveEngine::Run(CollectiveCall& call, uint64_t observed) {
  const ByteCounts before = transport_->bytes_moved();
  absl::Status status = RunOnce(call, observed);
  if (observer_ != nullptr) {
    const ByteCounts& now = transport_->bytes_moved();
    observer_->Finished(observed, status, now.sent - before.sent, now.received - before.received);
  }
  return status;
}

absl::Status CollectiveEngine::RunOnce(CollectiveCall& call, uint64_t observed) {
  if (aborted_.load(std::memory_order_relaxed)) return Ended(absl::OkStatus());
  if (!failed_.ok()) return failed_;
  call.print.sequence = ++sequence_;
  call.group = &group_;
  if (call.timeout == absl::ZeroDuration()) call.timeout = timeout_;
  if (observer_ != nullptr) observer_->Started(observed, sequence_);
  if (size_ == 1) return RunAlone(call);
  return Ended(RunTogether(call, observed));
}

// What a failure leaves behind; an abort of this rank's own goes before whatever came of it.
absl::Status CollectiveEngine::Ended(absl::Status status) {
  if (aborted_.load(std::memory_order_relaxed) && failed_.ok()) {
    std::lock_guard lock(abort_mutex_);
    status = absl::AbortedError(
        absl::StrCat("aborted by ", RankText(rank_, &group_), ": ", abort_reason_));
  }
  if (!status.ok() && failed_.ok()) failed_ = status;
  return failed_;
}

absl::Status CollectiveEngine::RunAlone(CollectiveCall& call) {
  if (call.print.op == OpKind::kAllToAllV) call.pair_counts = call.send_counts;
  if (owner_ != nullptr) return Ended(RunBackend(call, absl::Now() + call.timeout));
  payloads_[0] = static_cast<const std::byte*>(call.in.data);
  FinishInline(call, 0, payloads_);
  return absl::OkStatus();
}

absl::Status CollectiveEngine::RunTogether(CollectiveCall& call, uint64_t observed) {
  const absl::Time deadline = CoarseNow() + call.timeout;
  RETURN_IF_ERROR(Meet(call, deadline));
  if (observer_ != nullptr) observer_->Arrived(observed);
  if (FinishFromNotes(call)) return absl::OkStatus();
  return RunBackend(call, deadline);
}

absl::Status CollectiveEngine::Meet(CollectiveCall& call, absl::Time deadline) {
  const std::span<const std::byte> note = WriteNote(call);
  if (auto failure = transport_->Announce(note, notes_, deadline)) {
    return Failed(*failure, call, true);
  }
  RETURN_IF_ERROR(ReadHeads(call.print));
  RETURN_IF_ERROR(CompareHeads());
  KeepDescriptions();
  if (longest_list_ > 0) {
    RETURN_IF_ERROR(MeetLists(call, deadline));
    RETURN_IF_ERROR(CompareLists(call));
  }
  return absl::OkStatus();
}

int64_t CollectiveEngine::MostPayload(OpKind op) const {
  // Of these no user's data is part, and no backend runs them.
  if (op == OpKind::kBarrier || op == OpKind::kSplit || op == OpKind::kAllocate) {
    return kMostPayloadBytes;
  }
  return owner_ != nullptr ? -1 : note_payload_bytes_;
}

std::span<const std::byte> CollectiveEngine::WriteNote(const CollectiveCall& call) {
  NoteHead head = MakeHead(call);
  size_t at = sizeof(head);
  const auto append = [&](const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(note_.data() + at, data, bytes);
    at += bytes;
  };
  const size_t numbers = call.send_counts.size() + call.receive_counts.size();
  head.numbers = static_cast<uint16_t>(numbers);
  for (const auto* list : {&call.send_counts, &call.receive_counts}) {
    const size_t used = (at - sizeof(head)) / sizeof(int64_t);
    append(list->data(), std::min(list->size(), kFirstNumbers - used) * sizeof(int64_t));
  }
  const int64_t payload = ContributionBytes(call, rank_);
  head.has_payload = payload <= MostPayload(call.print.op) && numbers <= kFirstNumbers &&
                     at + kMostDescriptionBytes + payload <= note_.size();
  // A rank that gives nothing has all of it in its note, but buffers for what the root gives; and
  // ranks may differ in whether they have a payload where their counts differ.
  const bool by_backend = !head.has_payload || call.print.op == OpKind::kAllToAllV ||
                          RootContributionBytes(call, size_) > MostPayload(call.print.op);
  if (by_backend && !backends_.empty()) {
    head.description_bytes = static_cast<uint8_t>(
        backends_.front()->Describe(call, std::span(note_).subspan(at, kMostDescriptionBytes)));
    at += head.description_bytes;
  }
  if (head.has_payload) {
    head.payload_bytes = static_cast<uint16_t>(payload);
    append(call.in.data, payload);
  }
  std::memcpy(note_.data(), &head, sizeof(head));
  return {note_.data(), at};
}

absl::Status CollectiveEngine::ReadHeads(const Fingerprint& print) {
  longest_list_ = 0;
  for (int rank = 0; rank < size_; ++rank) {
    NoteHead& head = heads_[rank];
    const std::span<const std::byte> note = notes_[rank];
    size_t bytes = sizeof(head);
    if (note.size() >= bytes) {
      std::memcpy(&head, note.data(), sizeof(head));
      bytes += std::min<size_t>(head.numbers, kFirstNumbers) * sizeof(int64_t) +
               head.description_bytes + head.payload_bytes;
      longest_list_ = std::max<size_t>(longest_list_, head.numbers);
    }
    if (note.size() != bytes || head.description_bytes > kMostDescriptionBytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          RankText(rank, &group_), " came to ", ToString(print, group_.name), " with a note of ",
          note.size(), " bytes that is not of this version of the library"));
    }
  }
  return absl::OkStatus();
}

absl::Status CollectiveEngine::CompareHeads() {
  bool all_same = true;
  for (const NoteHead& head : heads_) all_same &= SameCall(head, heads_[0]);
  if (all_same) return absl::OkStatus();
  return absl::FailedPreconditionError(DescribeMismatch(heads_, group_).value_or(""));
}

void CollectiveEngine::KeepDescriptions() {
  for (int rank = 0; rank < size_; ++rank) {
    const size_t bytes = heads_[rank].description_bytes;
    std::byte* kept = description_bytes_.data() + rank * kMostDescriptionBytes;
    descriptions_[rank] = {kept, bytes};
    if (bytes == 0) continue;
    const size_t at =
        sizeof(NoteHead) + std::min<size_t>(heads_[rank].numbers, kFirstNumbers) * sizeof(int64_t);
    std::memcpy(kept, notes_[rank].data() + at, bytes);
  }
}

// Lists that are longer than a note can hold travel in further notes.
absl::Status CollectiveEngine::MeetLists(CollectiveCall& call, absl::Time deadline) {
  for (int rank = 0; rank < size_; ++rank) {
    const size_t numbers = heads_[rank].numbers;
    lists_[rank].resize(numbers);
    std::memcpy(lists_[rank].data(), notes_[rank].data() + sizeof(NoteHead),
                std::min(numbers, kFirstNumbers) * sizeof(int64_t));
  }
  if (longest_list_ <= kFirstNumbers) return absl::OkStatus();
  std::vector<int64_t> own(call.send_counts);
  own.insert(own.end(), call.receive_counts.begin(), call.receive_counts.end());
  constexpr size_t kNumbers = kMostNoteBytes / sizeof(int64_t);
  for (size_t begin = kFirstNumbers; begin < longest_list_; begin += kNumbers) {
    const size_t first = std::min(begin, own.size());
    const auto part = std::span(own).subspan(first, std::min(kNumbers, own.size() - first));
    if (auto failure = transport_->Announce(std::as_bytes(part), notes_, deadline)) {
      return Failed(*failure, call, true);
    }
    for (int rank = 0; rank < size_; ++rank) {
      const size_t numbers = lists_[rank].size();
      const size_t wanted = begin < numbers ? std::min(kNumbers, numbers - begin) : 0;
      const size_t bytes = std::min(wanted * sizeof(int64_t), notes_[rank].size());
      if (bytes > 0) std::memcpy(lists_[rank].data() + begin, notes_[rank].data(), bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status CollectiveEngine::CompareLists(CollectiveCall& call) {
  std::optional<std::string> mismatch;
  if (call.print.op == OpKind::kAllToAllV) {
    mismatch = DescribePairMismatch(heads_, lists_, group_);
    pair_counts_.clear();
    for (const std::vector<int64_t>& list : lists_) {
      pair_counts_.insert(pair_counts_.end(), list.begin(), list.begin() + size_);
    }
    call.pair_counts = pair_counts_;
  } else if (std::any_of(lists_.begin(), lists_.end(),
                         [&](const auto& list) { return list != lists_.front(); })) {
    mismatch = DescribeListMismatch(heads_, lists_, group_);
  }
  if (mismatch.has_value()) return absl::FailedPreconditionError(*mismatch);
  return absl::OkStatus();
}

bool CollectiveEngine::FinishFromNotes(const CollectiveCall& call) {
  for (int rank = 0; rank < size_; ++rank) {
    const NoteHead& head = heads_[rank];
    if (!head.has_payload) return false;
    // At its end, so before it come lists that fitted: with longer ones there is no payload.
    payloads_[rank] = notes_[rank].data() + notes_[rank].size() - head.payload_bytes;
  }
  FinishInline(call, rank_, payloads_);
  return true;
}

absl::Status CollectiveEngine::RunBackend(const CollectiveCall& call, absl::Time deadline) {
  CollectiveCall described = call;
  described.descriptions = descriptions_;
  for (const std::unique_ptr<Backend>& backend : backends_) {
    if (!backend->Takes(described)) continue;
    return Reported(backend->Run(described, deadline));
  }
  return absl::UnimplementedError(absl::StrCat("no backend of ", std::string(transport_->name()),
                                               " runs ", ToString(call.print, group_.name)));
}

// One rank reports, the others repeat it: a rank that already passes on a report stays quiet.
absl::Status CollectiveEngine::Reported(absl::Status status) {
  if (!status.ok() && !absl::IsAborted(status)) transport_->Abort(std::string(status.message()));
  return status;
}

absl::Status CollectiveEngine::RunPairs(PairCalls& calls) {
  if (aborted_.load(std::memory_order_relaxed) || !failed_.ok()) return Ended(absl::OkStatus());
  pairs_.Number(calls);
  if (calls.timeout == absl::ZeroDuration()) calls.timeout = timeout_;
  const ByteCounts before = transport_->bytes_moved();
  const auto observe = [&](const auto& tell) {
    if (observer_ == nullptr) return;
    for (size_t i = 0; i < calls.calls.size(); ++i) tell(calls.observed[i], calls.calls[i]);
  };
  observe([&](uint64_t id, const CollectiveCall& call) {
    observer_->Started(id, call.print.sequence);
  });
  const absl::Time deadline = absl::Now() + calls.timeout;
  absl::Status status;
  PairRunner::Outcome outcome = pairs_.Agree(calls, deadline);
  if (!outcome.failure.has_value() && outcome.mismatch.empty()) {
    observe([&](uint64_t id, const CollectiveCall&) { observer_->Arrived(id); });
    if (owner_ != nullptr) {
      status = Reported(owner_->RunPairs(calls.calls, deadline));
    } else {
      outcome = pairs_.Move(calls, deadline);
    }
  }
  if (outcome.failure.has_value()) {
    CollectiveCall& call = calls.calls[outcome.call];
    call.timeout = calls.timeout;
    status = Failed(*outcome.failure, call, outcome.arriving);
  } else if (!outcome.mismatch.empty()) {
    status = absl::FailedPreconditionError(outcome.mismatch);
    transport_->Abort(outcome.mismatch);
  }
  status = Ended(status);
  const ByteCounts& now = transport_->bytes_moved();
  const auto count = static_cast<int64_t>(std::max<size_t>(1, calls.calls.size()));
  observe([&](uint64_t id, const CollectiveCall&) {
    observer_->Finished(id, status, (now.sent - before.sent) / count,
                        (now.received - before.received) / count);
  });
  return status;
}

absl::StatusOr<SharedMemory> CollectiveEngine::Allocate(CollectiveCall& call, int64_t bytes,
                                                        uint64_t observed) {
  RETURN_IF_ERROR(Run(call, observed));
  const absl::Time deadline = absl::Now() + call.timeout;
  SharedSpace* const space = transport_->shared();
  std::optional<PeerFailure> failure;
  absl::StatusOr<SharedMemory> memory =
      space != nullptr ? space->Allocate(bytes, deadline, failure)
                       : AllocatePrivate(*transport_, bytes, deadline, failure);
  if (!failure.has_value()) return memory;
  return Ended(Failed(*failure, call, false));
}

absl::Status CollectiveEngine::Failed(const PeerFailure& failure, const CollectiveCall& call,
                                      bool arriving) {
  if (failure.kind == PeerFailure::Kind::kElsewhere) {
    return Reported(absl::FailedPreconditionError(pairs_.DescribeGreeter(failure, MakeHead(call))));
  }
  absl::Status status = Verdict(failure, call.print, arriving, call.timeout, &group_,
                                arriving ? LastCallOf(failure) : std::string());
  return Reported(std::move(status));
}

std::string CollectiveEngine::LastCallOf(const PeerFailure& failure) const {
  const NoteHead& head = heads_[failure.ranks.front()];
  if (head.print.sequence == 0) return "";
  return absl::StrCat(failure.ranks.size() == 1 ? "; its" : "; their", " last call was ",
                      ToString(head, group_));
}

void CollectiveEngine::Abort(std::string_view reason) {
  {
    std::lock_guard lock(abort_mutex_);
    if (aborted_.load()) return;
    abort_reason_ = reason;
    aborted_.store(true);
  }
  transport_->Abort(reason);
  for (const std::unique_ptr<Backend>& backend : backends_) backend->Abort();
}

}  // namespace plinth::comm
