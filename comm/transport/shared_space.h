// Memory that all ranks of a group address: what collectives without messages are built on.
//
//   staging    an area of each rank that it writes and the others read
//   counters   how far each rank is; the others wait for them as for a message
//   registered memory   buffers of each rank, of any size, that the others read and write in place
#ifndef PLINTH_COMM_TRANSPORT_SHARED_SPACE_H_
#define PLINTH_COMM_TRANSPORT_SHARED_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Where a buffer lies, in words that every rank understands. Plain bytes, to travel in a note.
struct SharedPlace {
  uint64_t region = 0;  // 0: memory that this rank alone addresses
  uint64_t offset = 0;

  bool operator==(const SharedPlace&) const = default;
};

// Registered memory of this rank. Whoever holds it keeps this rank's view of the region alive, of
// the peers' parts too; the memory itself goes when the last rank lets go. Empty by default.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(std::shared_ptr<std::byte> data, int64_t bytes)
      : data_(std::move(data)), bytes_(bytes) {}

  std::byte* data() const { return data_.get(); }  // aligned to a page; zeroed
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> data_;
  int64_t bytes_ = 0;
};

// Belongs to a transport and is used by the thread that uses it, except where noted.
class SharedSpace {
 public:
  static constexpr int kCounters = 4;
  static constexpr int kEveryRank = -1;

  virtual ~SharedSpace() = default;

  // Of each rank; aligned to a page. What is in it is up to the user.
  virtual int64_t staging_bytes() const = 0;
  virtual std::byte* staging(int rank) const = 0;

  // Sets a counter of this rank, which only grows. Who has awaited the value sees all that this
  // rank wrote before.
  virtual void Signal(int counter, uint64_t value) = 0;
  // Until the counter of `peer`, or of every rank, is at least `value`. Failures as those of
  // Transport::Exchange, with the ranks that are behind as the guilty ones.
  virtual std::optional<PeerFailure> Await(int counter, uint64_t value, int peer,
                                           absl::Time deadline) = 0;
  // Both, for every rank: all that any rank wrote before is seen by all.
  virtual std::optional<PeerFailure> Meet(int counter, uint64_t value, absl::Time deadline) = 0;

  // Called by every rank, each with the bytes it wants, in one order with announces and exchanges.
  // kResourceExhausted, the same text on every rank, when one cannot have its part; the group
  // stays usable then. `failure` is set, and an error returned, when ranks did not come.
  virtual absl::StatusOr<SharedMemory> Allocate(int64_t bytes, absl::Time deadline,
                                                std::optional<PeerFailure>& failure) = 0;

  // Region 0 unless all of [data, data + bytes) is registered memory of this rank. Thread-safe.
  virtual SharedPlace PlaceOf(const void* data, int64_t bytes) const = 0;
  // Whether every rank may copy from the memory of every other, also what is not registered; equal
  // on all ranks. What is staged is copied twice, this once, by the kernel.
  virtual bool reads_peers() const = 0;
  // Copies `bytes` from `address` of `rank` to `to`. The failure tells that the rank is gone.
  virtual std::optional<PeerFailure> ReadPeer(int rank, uint64_t address, int64_t bytes,
                                              void* to) = 0;
  // What `rank` has at `place`; this rank holds registered memory of the same region.
  virtual std::byte* AddressOf(int rank, const SharedPlace& place) const = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHARED_SPACE_H_
