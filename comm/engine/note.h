// What ranks show each other when they meet at a call, and how notes that disagree are told.
#ifndef PLINTH_COMM_ENGINE_NOTE_H_
#define PLINTH_COMM_ENGINE_NOTE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plinth/comm/call/call.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

// The first bytes of every note. Plain bytes on the wire: no padding.
struct NoteHead {
  Fingerprint print;
  int32_t line = 0;               // of the call site
  uint16_t numbers = 0;           // in the lists of the call, of which the first follow
  uint16_t payload_bytes = 0;     // after those and the description
  uint8_t description_bytes = 0;  // between the two
  uint8_t has_payload = 0;        // all that this rank contributes is in the note
  char file[30] = {};             // the end of the file's name, zeros after it
};
static_assert(sizeof(NoteHead) == 64);

// The most that a rank contributes to a call that is finished from the notes.
inline constexpr int64_t kMostPayloadBytes = 1024;
// Numbers of a list that fit the first note beside a description; the rest follow in notes of
// their own.
inline constexpr size_t kFirstNumbers =
    (kMostNoteBytes - sizeof(NoteHead) - kMostDescriptionBytes) / sizeof(int64_t);

// print, line and file of the call.
NoteHead MakeHead(const CollectiveCall& call);

// "all_reduce #17 of group dp (f32 x 8) at trainer.cc:120".
std::string ToString(const NoteHead& head, const GroupInfo& group);

// Whether two ranks called the same, lists aside.
bool SameCall(const NoteHead& a, const NoteHead& b);

// Each returns one line, the same on every rank, or nothing when all is well. The first two name
// each rank that differs from most (on a draw: from the lowest ranks) and what both called.
// By rank of the group; `lists` are what the ranks passed to a v-operation or a split.
std::optional<std::string> DescribeMismatch(std::span<const NoteHead> heads,
                                            const GroupInfo& group);
std::optional<std::string> DescribeListMismatch(std::span<const NoteHead> heads,
                                                std::span<const std::vector<int64_t>> lists,
                                                const GroupInfo& group);
// lists[i] are the counts that rank i sends to each rank, then those it receives from each.
std::optional<std::string> DescribePairMismatch(std::span<const NoteHead> heads,
                                                std::span<const std::vector<int64_t>> lists,
                                                const GroupInfo& group);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_ENGINE_NOTE_H_
