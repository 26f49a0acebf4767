// Reads what flight recorders left behind. The files are untrusted: any bytes give an error or a
// dump whose every field lies within its bounds.
#ifndef PLINTH_COMM_RECORDER_DUMP_H_
#define PLINTH_COMM_RECORDER_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/recorder/layout.h"

namespace plinth::comm {

// Times are nanoseconds of the rank's CLOCK_MONOTONIC, in [0, 2^60); 0 while not reached.
struct RecordedCall {
  Fingerprint print;
  uint64_t ordinal = 0;  // of the calls that the rank made, from 1
  int64_t bytes = 0;     // of the caller's larger buffer
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t arrived_ns = 0;
  int64_t finished_ns = 0;
  CallState state = CallState::kStarted;
  std::string file;
  int line = 0;
};

struct RecordedFailure {
  int64_t at_ns = 0;
  uint64_t sequence = 0;
  FailureKind kind = FailureKind::kOther;
  std::vector<int> blamed;  // ranks of the group
  std::string text;
};

// Texts hold no control characters.
struct FlightDump {
  std::string path;
  std::string group, run, host, boot, transport;
  int rank = 0;
  int size = 1;
  uint64_t group_id = 0;
  std::vector<int> world_ranks;  // by rank of the group; empty when not known
  int64_t process = 0;
  int64_t process_start = 0;
  int64_t monotonic_ns = 0;  // the two clocks at one moment
  int64_t realtime_ns = 0;
  GroupLife life = GroupLife::kMember;
  int64_t life_ns = 0;
  uint64_t calls_made = 0;
  std::optional<RecordedFailure> failure;
  std::vector<RecordedCall> calls;   // whose turn has come, in that order
  std::vector<RecordedCall> queued;  // that wait for their turn, in the order made
  int damaged_records = 0;           // being written when the process ended, or spoilt since
  bool cut_short = false;            // the file ends before its last record
};

// kDataLoss: no dump, or one whose header is spoilt. kUnimplemented: of another version.
absl::StatusOr<FlightDump> ParseDump(std::span<const std::byte> bytes);
absl::StatusOr<FlightDump> ReadDump(const std::string& path);

struct DumpDirectory {
  struct Unreadable {
    std::string path;
    std::string reason;
  };
  std::vector<FlightDump> dumps;  // by file name
  std::vector<Unreadable> unreadable;
};
// Every dump in the directory. kNotFound when there is none, or no such directory.
absl::StatusOr<DumpDirectory> ReadDumpDirectory(const std::string& directory);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_DUMP_H_
