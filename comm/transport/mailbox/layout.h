// What lies where in the block of memory that the ranks of a mem or shm group share.
//
//   | GroupCell | RankCell x size | Counter x size x kCounters | NoteSlot x size x 2 |
//   | RingEnds x size x size | ring bytes x size x (size - 1) | staging bytes x size |
#ifndef PLINTH_COMM_TRANSPORT_MAILBOX_LAYOUT_H_
#define PLINTH_COMM_TRANSPORT_MAILBOX_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

enum class RankState : uint32_t { kPresent = 0, kLeft, kAborting, kAborted };

enum class PeerReads : uint32_t { kUntried = 0, kAll, kNotAll };

struct alignas(64) GroupCell {
  // Ranks that may be asleep: while there are none, nobody has to be woken.
  std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> aborted;  // not 0 once a rank's state is kAborted
};

struct alignas(64) RankCell {
  // 0 while awake, else whom the rank sleeps for, as Waiter writes it; what it sleeps on (futex).
  std::atomic<uint32_t> sleeps_for;
  std::atomic<RankState> state;
  // Who the rank is; 0 until it has joined. Used by shm.
  std::atomic<int64_t> process_start;
  std::atomic<int64_t> process_id;
  std::atomic<uint64_t> known_address;  // of a word that the rank's peers know
  std::atomic<PeerReads> reads;         // whether it could read theirs
  // Valid once state is kAborted.
  uint32_t reason_bytes;
  char reason[kMaxAbortReasonBytes];
};

// How far a rank is; a cache line each, as every rank but the owner polls it.
struct alignas(64) Counter {
  std::atomic<uint64_t> value;
};

// What a rank has announced. There are two, for odd and even announces: a rank posts the next but
// one only when all have posted the next, and so have read this one. A short note lies in the
// same cache line as its number, so that one transfer between cores brings it.
struct alignas(64) NoteSlot {
  std::atomic<uint32_t> sequence;  // of the announce, counted from 1
  uint32_t bytes;
  std::byte data[kMostNoteBytes];
};

// Bytes so far; the ring holds written - read of them.
struct RingEnds {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

struct MailboxSizes {
  int ranks = 0;
  int64_t ring_bytes = 0;     // a power of two
  int64_t staging_bytes = 0;  // of each rank; a multiple of a page

  // As large as helps, within 32 MiB for all rings and 16 MiB for all staging if possible.
  static MailboxSizes Default(int ranks);
  int64_t TotalBytes() const;
};

// A view; the block outlives it.
class MailboxView {
 public:
  // `block` is aligned to a page and has sizes.TotalBytes().
  MailboxView(std::byte* block, const MailboxSizes& sizes);
  // Makes a fresh block ready. Called once, before any rank uses it.
  void Format() const;

  int size() const { return sizes_.ranks; }
  int64_t ring_bytes() const { return sizes_.ring_bytes; }
  int64_t staging_bytes() const { return sizes_.staging_bytes; }

  GroupCell& group() const { return *group_; }
  RankCell& cell(int rank) const { return cells_[rank]; }
  Counter& counter(int rank, int which) const {
    return counters_[rank * SharedSpace::kCounters + which];
  }
  NoteSlot& note(int rank, uint32_t sequence) const { return notes_[rank * 2 + (sequence & 1)]; }
  RingEnds& ends(int from, int to) const { return ends_[from * size() + to]; }
  std::byte* ring(int from, int to) const {
    return rings_ + (from * (size() - 1) + (to < from ? to : to - 1)) * ring_bytes();
  }
  std::byte* staging(int rank) const { return staging_ + rank * staging_bytes(); }

 private:
  MailboxSizes sizes_;
  GroupCell* group_;
  RankCell* cells_;
  Counter* counters_;
  NoteSlot* notes_;
  RingEnds* ends_;
  std::byte* rings_;
  std::byte* staging_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MAILBOX_LAYOUT_H_
