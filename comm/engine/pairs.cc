#include "plinth/comm/engine/pairs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/verdict.h"

namespace plinth::comm {
namespace {

// Larger than any length of a note, so that a peer that is elsewhere is not taken for a sender.
constexpr uint32_t kMagic = 0x72696170;

bool Matches(const Fingerprint& send, const Fingerprint& receive) {
  return send.count == receive.count && send.dtype == receive.dtype &&
         send.sequence == receive.sequence;
}

std::string CountText(int count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

PairRunner::PairRunner(Transport* transport, const GroupInfo* group, std::vector<NoteHead>* heads)
    : transport_(*transport), group_(*group), heads_(*heads), sequences_(transport->size()) {}

PairRunner::Peer& PairRunner::PeerOf(int rank, size_t call) {
  for (Peer& peer : peers_) {
    if (peer.rank == rank) return peer;
  }
  peers_.push_back({});
  peers_.back().rank = rank;
  peers_.back().first_call = call;
  return peers_.back();
}

void PairRunner::Number(PairCalls& calls) {
  // Calls made at once share a number, as the two ends list theirs in different orders.
  peers_.clear();
  for (size_t i = 0; i < calls.calls.size(); ++i) {
    PeerOf(calls.calls[i].print.root, i);
  }
  for (const Peer& peer : peers_) ++sequences_[peer.rank];
  for (CollectiveCall& call : calls.calls) {
    call.print.sequence = sequences_[call.print.root];
    call.group = &group_;
  }
  for (const OpKind op : {OpKind::kSend, OpKind::kReceive}) {
    for (size_t i = 0; i < calls.calls.size(); ++i) {
      const CollectiveCall& call = calls.calls[i];
      if (call.print.op != op || call.print.root == transport_.rank()) continue;
      Peer& peer = PeerOf(call.print.root, i);
      if (peer.own_prints.empty()) peer.own.head = MakeHead(call);
      peer.own_prints.push_back(call.print);
      ++(op == OpKind::kSend ? peer.own.sends : peer.own.receives);
      peer.own.magic = kMagic;
    }
  }
  std::erase_if(peers_, [&](const Peer& peer) { return peer.rank == transport_.rank(); });
}

PairRunner::Outcome PairRunner::Agree(const PairCalls& calls, absl::Time deadline) {
  sends_.clear();
  receives_.clear();
  for (Peer& peer : peers_) {
    sends_.push_back({peer.rank, &peer.own, sizeof(Greeting)});
    receives_.push_back({peer.rank, &peer.theirs, sizeof(Greeting)});
  }
  if (auto failure = transport_.Exchange(sends_, receives_, deadline)) {
    return Failed(*std::move(failure), true);
  }
  for (const Peer& peer : peers_) {
    std::string mismatch = CompareGreetings(peer);
    if (!mismatch.empty()) return {{}, peer.first_call, false, std::move(mismatch)};
    heads_[peer.rank] = peer.theirs.head;
  }
  sends_.clear();
  receives_.clear();
  for (Peer& peer : peers_) {
    peer.their_prints.assign(1, peer.theirs.head.print);
    const size_t count = peer.own_prints.size();
    if (count == 1) continue;
    peer.their_prints.resize(count);
    const auto bytes = static_cast<int64_t>(count * sizeof(Fingerprint));
    sends_.push_back({peer.rank, peer.own_prints.data(), bytes});
    receives_.push_back({peer.rank, peer.their_prints.data(), bytes});
  }
  if (!sends_.empty()) {
    if (auto failure = transport_.Exchange(sends_, receives_, deadline)) {
      return Failed(*std::move(failure), true);
    }
  }
  for (const Peer& peer : peers_) {
    std::string mismatch = ComparePrints(peer);
    if (!mismatch.empty()) return {{}, peer.first_call, false, std::move(mismatch)};
  }
  return {};
}

PairRunner::Outcome PairRunner::Move(const PairCalls& calls, absl::Time deadline) {
  const int self = transport_.rank();
  sends_.clear();
  receives_.clear();
  std::vector<const CollectiveCall*> to_self;
  for (const CollectiveCall& call : calls.calls) {
    const int peer = call.print.root;
    if (call.print.op == OpKind::kSend) {
      if (peer == self) {
        to_self.push_back(&call);
      } else if (call.in.bytes() > 0) {
        sends_.push_back({peer, call.in.data, call.in.bytes()});
      }
    } else if (peer != self && call.out.bytes() > 0) {
      receives_.push_back({peer, call.out.data, call.out.bytes()});
    }
  }
  auto sent = to_self.begin();
  for (const CollectiveCall& call : calls.calls) {
    if (call.print.op != OpKind::kReceive || call.print.root != self) continue;
    const ConstBuffer& from = (*sent++)->in;
    if (from.bytes() > 0) std::memmove(call.out.data, from.data, from.bytes());
  }
  if (sends_.empty() && receives_.empty()) return {};
  if (auto failure = transport_.Exchange(sends_, receives_, deadline)) {
    return Failed(*std::move(failure), false);
  }
  return {};
}

PairRunner::Outcome PairRunner::Failed(PeerFailure failure, bool arriving) const {
  size_t call = 0;
  for (const Peer& peer : peers_) {
    if (peer.rank == failure.ranks.front()) call = peer.first_call;
  }
  return {std::move(failure), call, arriving, ""};
}

std::string PairRunner::Tell(int rank, const Greeting& greeting, const Fingerprint& print,
                             int other) const {
  const std::string who = absl::StrCat(RankText(rank, &group_), " called ");
  NoteHead head = greeting.head;
  if (greeting.sends + greeting.receives == 1) {
    head.print = print;
    return absl::StrCat(who, ToString(head, group_));
  }
  const std::string_view file(head.file, strnlen(head.file, sizeof(head.file)));
  return absl::StrCat(who, "exchange #", print.sequence, " with ",
                      CountText(greeting.sends, "send"), " to and ",
                      CountText(greeting.receives, "receive"), " from ", RankText(other, &group_),
                      SiteText(file, head.line));
}

// Both ranks write the same line, as each puts the lower rank first.
std::string PairRunner::CompareGreetings(const Peer& peer) const {
  const int self = transport_.rank();
  if (peer.theirs.magic != kMagic) {
    return absl::StrCat(RankText(self, &group_), " called ", ToString(peer.own.head, group_),
                        ", but ", RankText(peer.rank, &group_),
                        " called an operation of the whole group");
  }
  if (peer.own.sends == peer.theirs.receives && peer.own.receives == peer.theirs.sends) return "";
  const std::string own = Tell(self, peer.own, peer.own.head.print, peer.rank);
  const std::string theirs = Tell(peer.rank, peer.theirs, peer.theirs.head.print, self);
  return self < peer.rank ? absl::StrCat(own, ", but ", theirs)
                          : absl::StrCat(theirs, ", but ", own);
}

std::string PairRunner::ComparePrints(const Peer& peer) const {
  const int self = transport_.rank();
  const size_t sends = peer.own.sends;
  const size_t receives = peer.own.receives;
  // The lower rank's sends first, then the higher one's.
  const bool lower = self < peer.rank;
  for (const bool own_sends : {lower, !lower}) {
    const size_t count = own_sends ? sends : receives;
    for (size_t i = 0; i < count; ++i) {
      const Fingerprint& send = own_sends ? peer.own_prints[i] : peer.their_prints[i];
      const Fingerprint& receive =
          own_sends ? peer.their_prints[receives + i] : peer.own_prints[sends + i];
      if (Matches(send, receive)) continue;
      const auto tell = [&](bool own, const Fingerprint& print) {
        Greeting greeting = own ? peer.own : peer.theirs;
        greeting.head.print = print;
        return absl::StrCat(RankText(own ? self : peer.rank, &group_), " called ",
                            ToString(greeting.head, group_));
      };
      return absl::StrCat(tell(own_sends, send), ", but ", tell(!own_sends, receive));
    }
  }
  return "";
}

}  // namespace plinth::comm
