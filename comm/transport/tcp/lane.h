// One direction of one connection: pieces of memory that go through it in order.
#ifndef PLINTH_COMM_TRANSPORT_TCP_LANE_H_
#define PLINTH_COMM_TRANSPORT_TCP_LANE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plinth::comm {

// Several pieces move in one system call. Reused between exchanges, so that steady work does not
// allocate. Not thread-safe.
class Lane {
 public:
  // The memory outlives its way through the lane. Empty pieces are fine.
  void Add(void* data, int64_t bytes) {
    if (bytes > 0) pieces_.push_back({data, static_cast<size_t>(bytes)});
  }

  bool open() const { return next_ < pieces_.size(); }
  bool broken() const { return broken_; }
  int error() const { return error_; }  // of errno, when broken; 0 for an orderly end

  // Moves what `fd` takes or has now and returns how many bytes. The first error, or the end of
  // what the other side sends, breaks the lane.
  int64_t Send(int fd) { return Move(fd, true); }
  int64_t Receive(int fd) { return Move(fd, false); }

 private:
  int64_t Move(int fd, bool sends);
  void Advance(size_t bytes);

  std::vector<iovec> pieces_;
  size_t next_ = 0;  // pieces before it are through
  bool broken_ = false;
  int error_ = 0;
};

// Deals a run of bytes out to lanes, kStripeBytes to each in turn. Both sides count the bytes of
// all runs since the connections stand, so they agree about who carries what without a word,
// and small messages stay in one lane.
inline constexpr int64_t kStripeBytes = int64_t{256} << 10;
void AddStriped(std::vector<Lane>& lanes, int64_t& position, void* data, int64_t bytes);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TCP_LANE_H_
