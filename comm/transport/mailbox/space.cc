#include "plinth/comm/transport/mailbox/space.h"

#include <atomic>
#include <utility>
#include <vector>

namespace plinth::comm {

MailboxSpace::MailboxSpace(Transport& transport, int rank, MailboxView view, const Waiter& waiter,
                           std::unique_ptr<Regions> regions)
    : transport_(transport),
      rank_(rank),
      view_(view),
      waiter_(waiter),
      regions_(std::move(regions)) {}

void MailboxSpace::Signal(int counter, uint64_t value) {
  view_.counter(rank_, counter).value.store(value, std::memory_order_release);
  waiter_.WakeSleepers();
}

std::optional<PeerFailure> MailboxSpace::Await(int counter, uint64_t value, int peer,
                                               absl::Time deadline) {
  const int end = peer == kEveryRank ? view_.size() : peer + 1;
  int at = peer == kEveryRank ? 0 : peer;  // the awaited ranks below it are there
  const auto ready = [&] {
    while (at < end && Reached(at, counter, value)) ++at;
    return at == end;
  };
  if (waiter_.Glance(ready)) return std::nullopt;
  const auto behind = [&] {
    std::vector<int> ranks;
    for (int rank = at; rank < end; ++rank) {
      if (!Reached(rank, counter, value)) ranks.push_back(rank);
    }
    return ranks;
  };
  return waiter_.Await(ready, behind, Waiter::WakenBy::kFirstGuilty, deadline);
}

std::optional<PeerFailure> MailboxSpace::Meet(int counter, uint64_t value, absl::Time deadline) {
  view_.counter(rank_, counter).value.store(value, std::memory_order_release);
  const auto ready = [&] {
    for (int rank = 0; rank < view_.size(); ++rank) {
      if (!Reached(rank, counter, value)) return false;
    }
    return true;
  };
  const bool done = waiter_.Glance(ready);
  // Not earlier: the fence in it would wait until the counter has left this core.
  waiter_.WakeSleepers();
  if (done) return std::nullopt;
  return Await(counter, value, kEveryRank, deadline);
}

absl::StatusOr<SharedMemory> MailboxSpace::Allocate(int64_t bytes, absl::Time deadline,
                                                    std::optional<PeerFailure>& failure) {
  return regions_->Allocate(transport_, bytes, deadline, failure);
}

SharedPlace MailboxSpace::PlaceOf(const void* data, int64_t bytes) const {
  return regions_->PlaceOf(data, bytes);
}

std::byte* MailboxSpace::AddressOf(int rank, const SharedPlace& place) const {
  return regions_->AddressOf(rank, place);
}

}  // namespace plinth::comm
