// Book-keeping of one exchange, the same for every transport.
#ifndef PLINTH_COMM_TRANSPORT_PROGRESS_H_
#define PLINTH_COMM_TRANSPORT_PROGRESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// How far each part of the exchange is. Reused between exchanges, so that steady work does not
// allocate. Not thread-safe.
class ExchangeProgress {
 public:
  explicit ExchangeProgress(int size) : busy_(size) {}

  // The spans outlive the exchange.
  void Start(std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
    sends_ = sends;
    receives_ = receives;
    sent_.assign(sends.size(), 0);
    received_.assign(receives.size(), 0);
  }

  // Offers each peer's first open part once: push(part, done) and pull(part, done) move bytes
  // from `done` on and return how many. True when any byte moved.
  template <typename Push, typename Pull>
  bool Step(const Push& push, const Pull& pull) {
    const bool pushed = StepParts(sends_, sent_, push);
    const bool pulled = StepParts(receives_, received_, pull);
    return pushed || pulled;
  }

  bool AllDone() const { return !AnyOpen(sends_, sent_) && !AnyOpen(receives_, received_); }

  bool ReceiveOpen(size_t i) const { return received_[i] < receives_[i].bytes; }

  // Peers of open parts, ascending.
  std::vector<int> OpenSends() const { return OpenPeers(sends_, sent_); }
  std::vector<int> OpenReceives() const { return OpenPeers(receives_, received_); }
  // Peers to blame for the exchange not being done; see Transport::Exchange.
  std::vector<int> Guilty() const {
    std::vector<int> ranks = OpenReceives();
    return ranks.empty() ? OpenSends() : ranks;
  }

 private:
  template <typename Part, typename Move>
  bool StepParts(std::span<const Part> parts, std::vector<int64_t>& done, const Move& move) {
    bool moved = false;
    std::fill(busy_.begin(), busy_.end(), 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (done[i] == part.bytes || busy_[part.peer]) continue;
      const int64_t bytes = move(part, done[i]);
      done[i] += bytes;
      moved |= bytes > 0;
      busy_[part.peer] = done[i] < part.bytes;
    }
    return moved;
  }
  template <typename Part>
  static bool AnyOpen(std::span<const Part> parts, const std::vector<int64_t>& done) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (done[i] < parts[i].bytes) return true;
    }
    return false;
  }
  template <typename Part>
  static std::vector<int> OpenPeers(std::span<const Part> parts, const std::vector<int64_t>& done) {
    std::vector<int> peers;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (done[i] < parts[i].bytes) peers.push_back(parts[i].peer);
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  std::span<const SendPart> sends_;
  std::span<const ReceivePart> receives_;
  std::vector<int64_t> sent_;  // bytes, per part
  std::vector<int64_t> received_;
  std::vector<char> busy_;  // by peer: an earlier part is not through yet
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_PROGRESS_H_
