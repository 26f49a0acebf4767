// The shared space of a mem or shm group.
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_SPACE_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "plinth/comm/transport/mailbox/layout.h"
#include "plinth/comm/transport/mailbox/regions.h"
#include "plinth/comm/transport/mailbox/waiter.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

class MailboxSpace final : public SharedSpace {
 public:
  // `transport`, whose part it is, and `waiter` outlive it.
  MailboxSpace(Transport& transport, int rank, MailboxView view, const Waiter& waiter,
               std::unique_ptr<Regions> regions);

  int64_t staging_bytes() const override { return view_.staging_bytes(); }
  std::byte* staging(int rank) const override { return view_.staging(rank); }
  void Signal(int counter, uint64_t value) override;
  std::optional<PeerFailure> Await(int counter, uint64_t value, int peer,
                                   absl::Time deadline) override;
  std::optional<PeerFailure> Meet(int counter, uint64_t value, absl::Time deadline) override;
  absl::StatusOr<SharedMemory> Allocate(int64_t bytes, absl::Time deadline,
                                        std::optional<PeerFailure>& failure) override;
  SharedPlace PlaceOf(const void* data, int64_t bytes) const override;
  bool reads_peers() const override { return regions_->reads_peers(); }
  std::optional<PeerFailure> ReadPeer(int rank, uint64_t address, int64_t bytes,
                                      void* to) override {
    return regions_->ReadPeer(rank, address, bytes, to);
  }
  std::byte* AddressOf(int rank, const SharedPlace& place) const override;

 private:
  // The counter of a rank is at least a value.
  bool Reached(int rank, int counter, uint64_t value) const {
    return view_.counter(rank, counter).value.load(std::memory_order_acquire) >= value;
  }

  Transport& transport_;
  const int rank_;
  const MailboxView view_;
  const Waiter& waiter_;
  const std::unique_ptr<Regions> regions_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_SPACE_H_
