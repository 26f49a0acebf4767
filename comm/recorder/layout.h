// The bytes of a flight recorder: the same in memory, in a mapped file and in a dump.
//
//   | DumpHeader | LiveState | FailureRecord | ... up to kDumpPrologueBytes | CallRecord x records
//   |
//
// Little-endian, fixed sizes, no pointers. Each block but LiveState ends with a checksum over its
// other words that is stored last, so a reader recognises a block that was being written when its
// process died, or that was damaged since. The n-th call that the rank made
// lies in slot n % records.
#ifndef PLINTH_COMM_RECORDER_LAYOUT_H_
#define PLINTH_COMM_RECORDER_LAYOUT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plinth::comm {

static_assert(std::endian::native == std::endian::little,
              "dumps are written as they lie in memory");

inline constexpr char kDumpMagic[8] = {'P', 'L', 'N', 'F', 'L', 'I', 'G', 'H'};
inline constexpr uint32_t kDumpVersion = 1;
inline constexpr int64_t kLiveStateOffset = 1024;
inline constexpr int64_t kFailureOffset = 2048;
inline constexpr int64_t kWorldRanksOffset = 4096;
inline constexpr int64_t kDumpPrologueBytes = 8192;
inline constexpr int32_t kMostRecords = 1 << 16;
inline constexpr int32_t kMostBlamed = 64;  // ranks that a failure can name
inline constexpr char kDumpSuffix[] = ".flight";

// Texts are cut to fit and end with a zero.
struct DumpHeader {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t record_bytes = 0;
  int32_t records = 0;
  int32_t rank = 0;
  int32_t size = 0;
  int32_t padding = 0;
  uint64_t group_id = 0;      // tells groups of one name apart; equal on its ranks
  int64_t process = 0;        // pid
  int64_t process_start = 0;  // clock ticks since boot, as in /proc: tells pids apart
  int64_t monotonic_ns = 0;   // the two clocks at one moment
  int64_t realtime_ns = 0;
  char boot[40] = {};  // the kernel's boot id: equal ids share CLOCK_MONOTONIC
  char host[64] = {};
  char group[128] = {};
  char run[64] = {};
  char transport[16] = {};
  uint64_t checksum = 0;
};

enum class GroupLife : uint64_t { kMember = 1, kLeaving, kLeft };

struct LiveState {
  uint64_t calls_made = 0;  // those that wait for their turn included
  uint64_t life = 0;        // a GroupLife
  int64_t life_ns = 0;      // CLOCK_MONOTONIC when it became so
};

enum class FailureKind : uint32_t { kOther = 0, kMismatch, kLate, kGone, kLeft, kAborted };

// The first error of the group on this rank. All zero: none.
struct FailureRecord {
  int64_t at_ns = 0;  // CLOCK_MONOTONIC
  uint64_t sequence = 0;
  uint32_t kind = 0;  // a FailureKind
  int32_t blamed_count = 0;
  int32_t blamed[kMostBlamed] = {};  // ranks of the group
  char text[1024] = {};
  uint64_t checksum = 0;
};

// By rank of the group, the rank that the launcher gave; those of larger groups are not kept.
struct WorldRanks {
  static constexpr int32_t kMost = 1022;
  int32_t ranks[kMost] = {};
  uint64_t checksum = 0;
};

enum class CallState : uint8_t {
  kQueued = 1,   // made; waits for its turn
  kStarted = 2,  // its turn has come; waits for the others
  kArrived = 3,  // all ranks have come to it; data moves
  kDone = 4,
  kFailed = 5,
};

// Times are CLOCK_MONOTONIC nanoseconds; 0 while not reached.
struct CallRecord {
  uint64_t ordinal = 0;   // of the calls that this rank made, from 1; 0 in a slot never used
  uint64_t sequence = 0;  // from 1, once its turn has come
  int64_t count = 0;
  int64_t bytes = 0;  // of the caller's larger buffer
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t arrived_ns = 0;
  int64_t finished_ns = 0;
  int32_t root = -1;
  int32_t line = 0;
  uint8_t op = 0;      // OpKind
  uint8_t reduce = 0;  // ReduceOp
  uint8_t dtype = 0;   // DType
  uint8_t state = 0;   // CallState
  uint32_t padding = 0;
  char file[48] = {};  // the end of the path
  uint64_t checksum = 0;
};

static_assert(sizeof(DumpHeader) <= kLiveStateOffset);
static_assert(kLiveStateOffset + sizeof(LiveState) <= kFailureOffset);
static_assert(kFailureOffset + sizeof(FailureRecord) <= kWorldRanksOffset);
static_assert(kWorldRanksOffset + sizeof(WorldRanks) <= kDumpPrologueBytes);
static_assert(sizeof(CallRecord) == 152 && sizeof(DumpHeader) % 8 == 0);

inline int64_t DumpBytes(int32_t records) {
  return kDumpPrologueBytes + records * static_cast<int64_t>(sizeof(CallRecord));
}

// What word number `i` of a block adds to its checksum. Odd factors: any change of a single word
// shows. As it is a sum, a writer that changes one word can keep it without reading the others.
inline uint64_t ChecksumOfWord(uint64_t word, size_t i) {
  return (word ^ (word >> 29)) * (0x9e3779b97f4a7c15u + 2 * 0x632be59bd9b4e019u * i);
}

// Over all words of a block but its last.
template <typename Block>
uint64_t BlockChecksum(const Block& block) {
  constexpr size_t kWords = sizeof(Block) / sizeof(uint64_t);
  static_assert(sizeof(Block) % sizeof(uint64_t) == 0);
  uint64_t words[kWords];
  std::memcpy(words, &block, sizeof(block));
  uint64_t sum = 0x5bd1e9955bd1e995u;
  for (size_t i = 0; i + 1 < kWords; ++i) {
    sum += ChecksumOfWord(words[i], i);
  }
  return sum;
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_LAYOUT_H_
