// The group whose ranks are processes of one host, over one shared-memory segment.
//
// Rank 0 makes the segment in /dev/shm as a file without a name and publishes, through the
// store, where its descriptor is (process, number) and which file it is (inode). The others open it
// through /proc. As it never has a name, two launches cannot meet in it and no crash, at whatever
// moment, leaves it behind. Registered memory is made of more such files (shared_files.h). The
// ranks must share a PID namespace and user.
#ifndef PLINTH_COMM_TRANSPORT_SHM_CONNECT_H_
#define PLINTH_COMM_TRANSPORT_SHM_CONNECT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Called by every rank. kResourceExhausted on every rank when /dev/shm lacks the room, with both
// numbers; kDeadlineExceeded names the ranks that did not come. `ring_bytes` is a power of two
// that rank 0 decides, 0 for the default.
absl::StatusOr<std::unique_ptr<Transport>> ConnectShm(const CommOptions& options, Store& store,
                                                      absl::Time deadline, int64_t ring_bytes = 0);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHM_CONNECT_H_
