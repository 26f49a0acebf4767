// How a note travels in a stream of bytes: a word with its kind and length, then the note.
//
// Notes of both kinds begin with a part of one size, so that a rank that awaits one kind can read
// the other, and never takes bytes of what follows. Most notes fit it; the rest of a longer one
// comes once the reader knows its length.
#ifndef PLINTH_COMM_TRANSPORT_NOTE_FRAME_H_
#define PLINTH_COMM_TRANSPORT_NOTE_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

enum class NoteKind : uint32_t { kAnnounce = 0, kGreeting = 1 };

inline constexpr size_t kFrameHeaderBytes = sizeof(uint32_t);
inline constexpr size_t kFrameBytes = kFrameHeaderBytes + kMostNoteBytes;
inline constexpr size_t kFirstPartBytes = 256;

inline void WriteFrame(NoteKind kind, std::span<const std::byte> note, std::byte* frame) {
  const uint32_t header = static_cast<uint32_t>(note.size()) << 1 | static_cast<uint32_t>(kind);
  std::memcpy(frame, &header, sizeof(header));
  if (!note.empty()) std::memcpy(frame + sizeof(header), note.data(), note.size());
}

// Any bytes are fit for what follows.
inline uint32_t FrameHeader(const std::byte* frame) {
  uint32_t header;
  std::memcpy(&header, frame, sizeof(header));
  return header;
}
inline NoteKind KindOf(const std::byte* frame) {
  return static_cast<NoteKind>(FrameHeader(frame) & 1);
}
// Its bytes may still be on their way.
inline std::span<const std::byte> NoteIn(const std::byte* frame) {
  return {frame + kFrameHeaderBytes, std::min<size_t>(FrameHeader(frame) >> 1, kMostNoteBytes)};
}
// Bytes that follow the first part.
inline int64_t RestOf(const std::byte* frame) {
  const size_t bytes = kFrameHeaderBytes + NoteIn(frame).size();
  return bytes <= kFirstPartBytes ? 0 : static_cast<int64_t>(bytes - kFirstPartBytes);
}

// `note` is of the other kind than this rank awaits of `peer`; its beginning, as long as a greeting
// may be, is there.
inline PeerFailure Elsewhere(int peer, std::span<const std::byte> note) {
  const size_t bytes = std::min(note.size(), kMostGreetingBytes);
  return {PeerFailure::Kind::kElsewhere,
          {peer},
          std::string(reinterpret_cast<const char*>(note.data()), bytes)};
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NOTE_FRAME_H_
