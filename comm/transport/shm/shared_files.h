// Registered memory between processes: every rank maps a nameless file of every rank.
#ifndef PLINTH_COMM_TRANSPORT_SHM_SHARED_FILES_H_
#define PLINTH_COMM_TRANSPORT_SHM_SHARED_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "plinth/comm/transport/mailbox/regions.h"
#include "plinth/comm/transport/shm/segment.h"

namespace plinth::comm {

class SharedFiles final : public Regions {
 public:
  // The process of each rank; none when they may not read each other's memory.
  explicit SharedFiles(std::vector<pid_t> processes);

  absl::StatusOr<SharedMemory> Allocate(Transport& transport, int64_t bytes, absl::Time deadline,
                                        std::optional<PeerFailure>& failure) override;
  SharedPlace PlaceOf(const void* data, int64_t bytes) const override;
  std::byte* AddressOf(int rank, const SharedPlace& place) const override;
  bool reads_peers() const override { return !processes_.empty(); }
  std::optional<PeerFailure> ReadPeer(int rank, uint64_t address, int64_t bytes, void* to) override;

 private:
  // One allocation of all ranks, as this rank sees it.
  struct Region {
    uint64_t id = 0;  // equal on all ranks
    int64_t own_bytes = 0;
    std::vector<std::shared_ptr<std::byte>> parts;  // by rank; null where it is empty
  };
  // Regions whose memory this rank holds. Memory may be let go after the transport has ended, so
  // it is shared with the memory.
  struct Table {
    std::mutex mutex;                         // guards what follows
    std::map<uintptr_t, const Region*> held;  // by the end of this rank's part
    std::map<uint64_t, const Region*> by_id;
  };

  const std::vector<pid_t> processes_;
  const std::shared_ptr<Table> table_;
  uint64_t regions_ = 0;  // so far
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHM_SHARED_FILES_H_
