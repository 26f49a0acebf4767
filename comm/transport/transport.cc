#include "plinth/comm/transport/transport.h"

#include <algorithm>
#include <cstring>

#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

// A frame begins with the note's length. Most notes fit the first part, sent at once; what is
// longer follows once the reader knows its length.
constexpr size_t kFrameBytes = sizeof(uint32_t) + kMostNoteBytes;
constexpr size_t kFirstPartBytes = 128;

size_t LengthOf(const std::byte* frame) {
  uint32_t length;
  std::memcpy(&length, frame, sizeof(length));
  return std::min<size_t>(length, kMostNoteBytes);
}

int64_t RestOf(const std::byte* frame) {
  const size_t bytes = sizeof(uint32_t) + LengthOf(frame);
  return bytes <= kFirstPartBytes ? 0 : static_cast<int64_t>(bytes - kFirstPartBytes);
}

}  // namespace

std::optional<PeerFailure> Transport::Announce(std::span<const std::byte> note,
                                               std::vector<std::span<const std::byte>>& notes,
                                               absl::Time deadline) {
  CHECK_LE(note.size(), kMostNoteBytes);
  note_frames_.resize(kFrameBytes * size());
  const auto frame = [this](int rank) { return note_frames_.data() + kFrameBytes * rank; };
  const uint32_t length = static_cast<uint32_t>(note.size());
  std::byte* own = frame(rank());
  std::memcpy(own, &length, sizeof(length));
  if (!note.empty()) std::memcpy(own + sizeof(length), note.data(), note.size());

  std::vector<SendPart> sends;
  std::vector<ReceivePart> receives;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    sends.push_back({peer, own, kFirstPartBytes});
    receives.push_back({peer, frame(peer), kFirstPartBytes});
  }
  if (auto failure = Exchange(sends, receives, deadline)) return failure;

  for (SendPart& part : sends) part = {part.peer, own + kFirstPartBytes, RestOf(own)};
  for (ReceivePart& part : receives) {
    std::byte* theirs = frame(part.peer);
    part = {part.peer, theirs + kFirstPartBytes, RestOf(theirs)};
  }
  if (auto failure = Exchange(sends, receives, deadline)) return failure;

  std::optional<PeerFailure> known = FindFailure();
  if (known.has_value() && known->kind == PeerFailure::Kind::kAborted) return known;
  notes.resize(size());
  for (int peer = 0; peer < size(); ++peer) {
    notes[peer] = {frame(peer) + sizeof(length), LengthOf(frame(peer))};
  }
  return std::nullopt;
}

}  // namespace plinth::comm
