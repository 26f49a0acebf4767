// The tcp transport over connections that stand already.
#ifndef PLINTH_COMM_TRANSPORT_TCP_MESH_H_
#define PLINTH_COMM_TRANSPORT_TCP_MESH_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "plinth/comm/net/socket.h"
#include "plinth/comm/transport/progress.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// Two connections to one peer. `data` carries the parts as bare bytes; `control` carries at most
// one message, so that an abort is not stuck behind data: u8 'A' (abort) or 'L' (left), u32
// length, text. The end of `data` is how a dead peer is noticed at once.
struct TcpLink {
  Fd data;
  Fd control;
};

class TcpMesh final : public Transport {
 public:
  // `links` by rank; the own one is empty.
  TcpMesh(int rank, std::vector<TcpLink> links);
  ~TcpMesh() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string_view name() const override { return "tcp"; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  void Abort(std::string_view reason) override;

 private:
  struct Peer {
    TcpLink link;
    bool send_broken = false;
    bool receive_ended = false;
    bool control_ended = false;
    std::string control_text;  // bytes of its message so far
  };
  // Moves what can be moved now; true when anything was.
  bool Step();
  int64_t SendSome(const SendPart& part, int64_t done);
  int64_t ReceiveSome(const ReceivePart& part, int64_t done);
  // Waits until a socket that matters is ready, a control message comes or the deadline is over.
  void WaitForSockets(absl::Time deadline);
  void ReadControl(Peer& peer);
  std::optional<PeerFailure> FindAbort() const;
  std::optional<PeerFailure> FindEnded();
  // Whether peer said that it left, waiting a moment for the message.
  bool SaidLeft(int peer);
  void Tell(char kind, std::string_view text);

  const int rank_;
  std::vector<Peer> peers_;
  std::atomic<bool> told_ = false;  // the one control message is out
  ExchangeProgress progress_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TCP_MESH_H_
