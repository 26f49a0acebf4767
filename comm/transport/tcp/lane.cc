#include "plinth/comm/transport/tcp/lane.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace plinth::comm {
namespace {

// In one system call: enough to make its cost small, little enough that what the other side
// reads is still in a cache.
constexpr size_t kMostBytesAtOnce = size_t{512} << 10;
constexpr size_t kMostPiecesAtOnce = 16;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

int64_t Lane::Move(int fd, bool sends) {
  if (broken_ || !open()) return 0;
  iovec batch[kMostPiecesAtOnce];
  size_t count = 0;
  size_t room = kMostBytesAtOnce;
  while (count < kMostPiecesAtOnce && next_ + count < pieces_.size() && room > 0) {
    batch[count] = pieces_[next_ + count];
    batch[count].iov_len = std::min(batch[count].iov_len, room);
    room -= batch[count].iov_len;
    ++count;
  }
  msghdr message{};
  message.msg_iov = batch;
  message.msg_iovlen = count;
  const ssize_t moved = sends ? sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                              : recvmsg(fd, &message, MSG_DONTWAIT);
  if (moved > 0) {
    Advance(static_cast<size_t>(moved));
    return moved;
  }
  if (moved == 0 || !WouldBlock(errno)) {
    broken_ = true;
    error_ = moved == 0 ? 0 : errno;
  }
  return 0;
}

void Lane::Advance(size_t bytes) {
  while (bytes > 0) {
    iovec& piece = pieces_[next_];
    const size_t taken = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + taken;
    piece.iov_len -= taken;
    bytes -= taken;
    if (piece.iov_len == 0) ++next_;
  }
  if (!open()) {
    pieces_.clear();
    next_ = 0;
  }
}

void AddStriped(std::vector<Lane>& lanes, int64_t& position, void* data, int64_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  if (lanes.size() == 1) {
    lanes.front().Add(at, bytes);
    position += bytes;
    return;
  }
  while (bytes > 0) {
    const int64_t taken = std::min(bytes, kStripeBytes - position % kStripeBytes);
    lanes[(position / kStripeBytes) % lanes.size()].Add(at, taken);
    at += taken;
    position += taken;
    bytes -= taken;
  }
}

}  // namespace plinth::comm
