// Files without a name in /dev/shm, which other processes open through /proc. As they never have
// a name, no crash, at whatever moment, leaves one behind.
#ifndef PLINTH_COMM_TRANSPORT_SHM_SEGMENT_H_
#define PLINTH_COMM_TRANSPORT_SHM_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {

// An open file, mapped to be read and written. The mapping may outlive the descriptor.
struct Segment {
  Fd fd;
  std::shared_ptr<std::byte> map;
};

// What another process needs to open a segment; it must still be open here when it does. Inode
// and device tell it from any other file. Plain bytes, to travel in a note.
struct SegmentAddress {
  int64_t process = 0;
  int64_t fd = -1;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = 0;
};

// Zeroed, with all its pages taken. kResourceExhausted with what is needed and what there is when
// /dev/shm lacks the room; `advice` says what to do about it.
absl::StatusOr<Segment> CreateSegment(int64_t bytes, const char* advice);
SegmentAddress AddressOf(const Segment& segment, int64_t bytes);
// kFailedPrecondition when this process cannot open it or finds another file there.
absl::StatusOr<Segment> OpenSegment(const SegmentAddress& address);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHM_SEGMENT_H_
