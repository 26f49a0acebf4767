#include "plinth/comm/engine/pairs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/verdict.h"

namespace plinth::comm {
namespace {

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
    }
  }
  std::erase_if(peers_, [&](const Peer& peer) { return peer.rank == transport_.rank(); });
}

PairRunner::Outcome PairRunner::Agree(const PairCalls& calls, absl::Time deadline) {
  greetings_.clear();
  for (const Peer& peer : peers_) {
    greetings_.push_back({peer.rank, std::as_bytes(std::span(&peer.own, 1)), {}});
  }
  if (auto failure = transport_.Greet(greetings_, deadline)) {
    return Failed(*std::move(failure), true);
  }
  Outcome greeted = ReadGreetings();
  if (!greeted.mismatch.empty()) return greeted;
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

PairRunner::Outcome PairRunner::ReadGreetings() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    const std::span<const std::byte> note = greetings_[i].theirs;
    std::string mismatch;
    if (note.size() == sizeof(PairNote)) {
      std::memcpy(&peer.theirs, note.data(), sizeof(PairNote));
      mismatch = CompareNotes(peer);
    } else {
      mismatch = absl::StrCat(RankText(peer.rank, &group_), " came to ",
                              ToString(peer.own.head, group_), " with a note of ", note.size(),
                              " bytes that is not of this version of the library");
    }
    if (!mismatch.empty()) return {{}, peer.first_call, false, std::move(mismatch)};
    heads_[peer.rank] = peer.theirs.head;
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
  const auto peer = std::find_if(peers_.begin(), peers_.end(),
                                 [&](const Peer& p) { return p.rank == failure.ranks.front(); });
  const size_t call = peer == peers_.end() ? 0 : peer->first_call;
  if (failure.kind == PeerFailure::Kind::kElsewhere) {
    NoteHead head;
    std::memcpy(&head, failure.detail.data(), std::min(failure.detail.size(), sizeof(head)));
    return {{}, call, false, TellCrossing(transport_.rank(), peer->own, peer->rank, head)};
  }
  return {std::move(failure), call, arriving, ""};
}

std::string PairRunner::DescribeGreeter(const PeerFailure& failure, const NoteHead& own) const {
  PairNote note;
  std::memcpy(&note, failure.detail.data(), std::min(failure.detail.size(), sizeof(note)));
  return TellCrossing(failure.ranks.front(), note, transport_.rank(), own);
}

std::string PairRunner::TellCrossing(int pair_rank, const PairNote& note, int group_rank,
                                     const NoteHead& head) const {
  return absl::StrCat(Tell(pair_rank, note, group_rank), ", but ", RankText(group_rank, &group_),
                      " called ", ToString(head, group_));
}

std::string PairRunner::Tell(int rank, const PairNote& note, int other) const {
  const std::string who = absl::StrCat(RankText(rank, &group_), " called ");
  const NoteHead& head = note.head;
  if (note.sends + note.receives == 1) return absl::StrCat(who, ToString(head, group_));
  const std::string_view file(head.file, strnlen(head.file, sizeof(head.file)));
  return absl::StrCat(who, "exchange #", head.print.sequence, " with ",
                      CountText(note.sends, "send"), " to and ",
                      CountText(note.receives, "receive"), " from ", RankText(other, &group_),
                      SiteText(file, head.line));
}

// Both ranks write the same line, as each puts the lower rank first.
std::string PairRunner::CompareNotes(const Peer& peer) const {
  const int self = transport_.rank();
  if (peer.own.sends == peer.theirs.receives && peer.own.receives == peer.theirs.sends) return "";
  const std::string own = Tell(self, peer.own, peer.rank);
  const std::string theirs = Tell(peer.rank, peer.theirs, self);
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
        NoteHead head = own ? peer.own.head : peer.theirs.head;
        head.print = print;
        return absl::StrCat(RankText(own ? self : peer.rank, &group_), " called ",
                            ToString(head, group_));
      };
      return absl::StrCat(tell(own_sends, send), ", but ", tell(!own_sends, receive));
    }
  }
  return "";
}

}  // namespace plinth::comm
