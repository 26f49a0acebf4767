// What a group allocates where its ranks have no memory in common that needs a region of its own.
#ifndef PLINTH_COMM_TRANSPORT_PRIVATE_MEMORY_H_
#define PLINTH_COMM_TRANSPORT_PRIVATE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// At least a page, aligned to one; not zeroed. Null when there is no memory.
std::shared_ptr<std::byte> AllocatePages(int64_t bytes);

// Keeps the contract of SharedSpace::Allocate with plain memory of each rank.
absl::StatusOr<SharedMemory> AllocatePrivate(Transport& transport, int64_t bytes,
                                             absl::Time deadline,
                                             std::optional<PeerFailure>& failure);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_PRIVATE_MEMORY_H_
