// Where the registered memory of a mem or shm group comes from.
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_REGIONS_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// The part of SharedSpace that differs between threads and processes, as described there.
class Regions {
 public:
  virtual ~Regions() = default;
  // Ranks tell each other of their parts by announces of `transport`.
  virtual absl::StatusOr<SharedMemory> Allocate(Transport& transport, int64_t bytes,
                                                absl::Time deadline,
                                                std::optional<PeerFailure>& failure) = 0;
  virtual SharedPlace PlaceOf(const void* data, int64_t bytes) const = 0;
  virtual std::byte* AddressOf(int rank, const SharedPlace& place) const = 0;
  virtual bool reads_peers() const = 0;
  virtual std::optional<PeerFailure> ReadPeer(int rank, uint64_t address, int64_t bytes,
                                              void* to) = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_REGIONS_H_
