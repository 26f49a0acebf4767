// The tcp transport over connections that stand already.
#ifndef PLINTH_COMM_TRANSPORT_TCP_LINKS_H_
#define PLINTH_COMM_TRANSPORT_TCP_LINKS_H_

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/transport/note_frame.h"
#include "plinth/comm/transport/tcp/lane.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// The connections to one peer. `data` carry the parts as bare bytes, striped, and notes in the
// first of them. `control` carries at most one message, so that an abort is not stuck behind
// data: u8 'A' (abort) or 'L' (left), u32 length, text. The end of `data` is how a dead process
// is noticed at once, probes on the idle `control` how a vanished host is.
struct TcpLink {
  std::vector<Fd> data;
  Fd control;
};

class TcpLinks final : public Transport {
 public:
  // `links` by rank, each with equally many data connections; the own one is empty. `choice`
  // tells people which interfaces are used. A host that does not answer is given up after half
  // of `timeout`, within 4 to 20 s. kResourceExhausted when the process has no descriptor left.
  static absl::StatusOr<std::unique_ptr<Transport>> Make(int rank, std::vector<TcpLink> links,
                                                         std::string choice,
                                                         absl::Duration timeout);
  ~TcpLinks() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string_view name() const override { return "tcp"; }
  std::string Explain() const override { return choice_; }
  std::optional<PeerFailure> Exchange(std::span<const SendPart> sends,
                                      std::span<const ReceivePart> receives,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> Announce(std::span<const std::byte> note,
                                      std::vector<std::span<const std::byte>>& notes,
                                      absl::Time deadline) override;
  std::optional<PeerFailure> Greet(std::span<Greeting> greetings, absl::Time deadline) override;
  std::optional<PeerFailure> FindFailure() override;
  void Abort(std::string_view reason) override;

 private:
  // `controls` is an epoll set without members, `alarm` an eventfd.
  TcpLinks(int rank, std::vector<TcpLink> links, std::string choice, absl::Duration timeout,
           Fd controls, Fd alarm);

  struct Peer {
    TcpLink link;
    std::vector<Lane> out;  // by data connection
    std::vector<Lane> in;
    int64_t sent = 0;  // bytes of parts so far, for striping
    int64_t received = 0;
    std::string host;        // address of the other end
    bool same_host = false;  // the other end has this end's address
    bool control_ended = false;
    int control_error = 0;     // of errno, once it ended
    std::string control_text;  // bytes of its message so far

    bool Sending() const;
    bool Receiving() const;
  };

  // Moves all that is queued in the lanes. Where notes of a kind are awaited, a peer that sends
  // one of the other ends it.
  std::optional<PeerFailure> Drive(absl::Time deadline, std::optional<NoteKind> awaited = {});
  std::optional<PeerFailure> FindElsewhere(NoteKind awaited) const;
  // Where the note of a rank comes in.
  std::byte* Frame(int rank) { return note_frames_.data() + kFrameBytes * rank; }
  // Moves what can be moved now; true when anything was.
  bool Step();
  bool AllDone() const;
  // Peers to blame for the exchange not being done; see Transport::Exchange.
  std::vector<int> Guilty() const;
  // Waits until a socket that matters is ready, a control message comes or the deadline is over.
  void WaitForSockets(absl::Time deadline);
  void ReadControl(Peer& peer);
  // Reads what has come on all control connections.
  void ReadControls();
  std::optional<PeerFailure> FindAbort() const;
  std::optional<PeerFailure> FindEnded();
  std::optional<PeerFailure> FindLostHosts(bool at_deadline) const;
  // Whether peer said that it left, waiting a moment for the message.
  bool SaidLeft(int peer);
  void Tell(char kind, std::string_view text);

  const int rank_;
  const std::string choice_;
  std::vector<Peer> peers_;
  const Fd controls_;  // epoll set of the control connections that have not ended, by rank
  const Fd alarm_;     // readable once another thread may have aborted
  std::atomic<bool> told_ = false;  // the one control message is out
  int spins_;                       // looks before sleeping; 0 for ever when it starts so

  // Of the exchange that goes on; kept for their memory.
  std::vector<int> active_;  // peers with something queued
  std::vector<pollfd> polled_;
  std::vector<std::byte> note_frames_;   // of the last notes, by rank
  std::vector<std::byte> greet_frames_;  // that this rank sends
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_TCP_LINKS_H_
