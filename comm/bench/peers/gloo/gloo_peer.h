// gloo as the one to compare with over TCP: PyTorch's, in a Python process beside each rank.
#ifndef PLINTH_COMM_BENCH_PEERS_GLOO_GLOO_PEER_H_
#define PLINTH_COMM_BENCH_PEERS_GLOO_GLOO_PEER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/peers/peer.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"

namespace plinth::comm {

// The Python process times its own calls, so neither starting it nor talking to it counts; what
// Python and torch add to each call does, as it does for everybody who uses gloo this way, and is
// told by binding_us. Both processes map one memory, so results are checked here. The process ends
// with this object, and with this process however that ends.
class GlooPeer final : public Peer {
 public:
  // Called by every rank, before the first group forms. The Python is /usr/bin/python3, or
  // PLINTH_GLOO_PYTHON. kFailedPrecondition: it has no PyTorch with gloo. kUnavailable: gloo
  // cannot form its group.
  static absl::StatusOr<std::unique_ptr<GlooPeer>> Start(const CommOptions& options, Store& store);
  ~GlooPeer() override;

  std::string title() const override { return "gloo"; }
  std::string version() const override { return version_; }
  double binding_us() const override { return binding_us_; }
  absl::StatusOr<std::byte*> Memory(int64_t bytes) override;
  bool Supports(const Shape& shape, bool in_place) const override;
  absl::StatusOr<double> Run(const Shape& shape, const CallBuffers& buffers, int calls) override;

 private:
  explicit GlooPeer(absl::Duration timeout) : timeout_(timeout) {}
  absl::Status StartPython(const CommOptions& options);
  absl::Status Join(const CommOptions& options, Store& store);
  void Unmap();
  // What comes after "ok".
  absl::StatusOr<std::string> Ask(const std::string& command, absl::Duration patience);
  absl::StatusOr<std::string> Answer(absl::Duration patience);

  const absl::Duration timeout_;
  int pid_ = -1;
  Fd talk_;         // the process's standard input and output
  Fd memory_file_;  // which both map
  std::byte* memory_ = nullptr;
  int64_t memory_bytes_ = 0;
  std::string inbox_;  // bytes of answers not read yet
  std::string version_;
  double binding_us_ = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_PEERS_GLOO_GLOO_PEER_H_
