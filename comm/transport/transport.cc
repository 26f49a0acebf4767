#include "plinth/comm/transport/transport.h"

#include "plinth/comm/transport/note_frame.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {

std::optional<PeerFailure> Transport::Announce(std::span<const std::byte> note,
                                               std::vector<std::span<const std::byte>>& notes,
                                               absl::Time deadline) {
  CHECK_LE(note.size(), kMostNoteBytes);
  note_frames_.resize(kFrameBytes * size());
  const auto frame = [this](int rank) { return note_frames_.data() + kFrameBytes * rank; };
  std::byte* own = frame(rank());
  WriteFrame(NoteKind::kAnnounce, note, own);

  std::vector<SendPart> sends;
  std::vector<ReceivePart> receives;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    sends.push_back({peer, own, kFirstPartBytes});
    receives.push_back({peer, frame(peer), kFirstPartBytes});
  }
  if (auto failure = Exchange(sends, receives, deadline)) return failure;
  for (const ReceivePart& part : receives) {
    const std::byte* theirs = frame(part.peer);
    if (KindOf(theirs) != NoteKind::kAnnounce) return Elsewhere(part.peer, NoteIn(theirs));
  }

  for (SendPart& part : sends) part = {part.peer, own + kFirstPartBytes, RestOf(own)};
  for (ReceivePart& part : receives) {
    std::byte* theirs = frame(part.peer);
    part = {part.peer, theirs + kFirstPartBytes, RestOf(theirs)};
  }
  if (auto failure = Exchange(sends, receives, deadline)) return failure;

  std::optional<PeerFailure> known = FindFailure();
  if (known.has_value() && known->kind == PeerFailure::Kind::kAborted) return known;
  notes.resize(size());
  for (int peer = 0; peer < size(); ++peer) notes[peer] = NoteIn(frame(peer));
  return std::nullopt;
}

std::optional<PeerFailure> Transport::Greet(std::span<Greeting> greetings, absl::Time deadline) {
  greet_frames_.resize(2 * kFirstPartBytes * greetings.size());
  const auto frame = [this](size_t i) { return greet_frames_.data() + kFirstPartBytes * i; };
  std::vector<SendPart> sends;
  std::vector<ReceivePart> receives;
  for (size_t i = 0; i < greetings.size(); ++i) {
    CHECK_LE(greetings[i].own.size(), kMostGreetingBytes);
    std::byte* theirs = frame(greetings.size() + i);
    WriteFrame(NoteKind::kGreeting, greetings[i].own, frame(i));
    sends.push_back({greetings[i].peer, frame(i), kFirstPartBytes});
    receives.push_back({greetings[i].peer, theirs, kFirstPartBytes});
  }
  if (auto failure = Exchange(sends, receives, deadline)) return failure;
  for (size_t i = 0; i < greetings.size(); ++i) {
    const std::byte* theirs = frame(greetings.size() + i);
    if (KindOf(theirs) != NoteKind::kGreeting) return Elsewhere(greetings[i].peer, NoteIn(theirs));
    greetings[i].theirs = NoteIn(theirs);
  }
  return std::nullopt;
}

}  // namespace plinth::comm
