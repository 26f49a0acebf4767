// FlightRecorder: the last calls of one rank in one group, always on.
//
//   auto recorder = FlightRecorder::Create({.group = "dp", .rank = 3, .world_ranks = {...}});
//   const uint64_t call = recorder->Queued(print, bytes, site.file, site.line);
//   recorder->Started(call, sequence);
//   recorder->Arrived(call);
//   recorder->Finished(call, status.ok(), bytes_sent, bytes_received);
//
// comm/recorder/recording_observer.h hangs one on every group of a process.
//
// Memory   a ring of RecorderOptions::records calls, 152 bytes each. No event allocates or locks;
//          one costs a reading of the clock and writes the words that it changes, the first all.
// Files    With a directory the ring lies in a mapped file there from the start, so whatever ends
//          the process, SIGKILL included, leaves a dump. Without one, Dump writes the ring to
//          DefaultDumpDirectory. One file for each run, group and rank, readable by its owner
//          only; a new one replaces the old.
// Threads  All at any time, but the events of one call come one after the other.
// Read by  comm/recorder/dump.h and the program //comm:doctor.
#ifndef PLINTH_COMM_RECORDER_RECORDER_H_
#define PLINTH_COMM_RECORDER_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/recorder/layout.h"

namespace plinth::comm {

struct RecorderOptions {
  std::string group = "world";
  uint64_t group_id = 0;               // tells groups of one name apart; equal on its ranks
  int rank = 0;                        // of the group
  std::vector<int> world_ranks = {0};  // by rank of the group; its size is the group's
  std::string run;                     // tells launches apart; may be empty
  std::string transport;               // "shm", ...
  std::string directory;               // empty: the ring lies in memory
  int32_t records = 1024;              // [1, kMostRecords]
};

// Where Dump writes when no directory was chosen: plinth-comm-<run> in $TMPDIR or /tmp, and in a
// Bazel test in $TEST_TMPDIR. Without a run the name holds the user's number instead.
std::string DefaultDumpDirectory(std::string_view run);

// CLOCK_MONOTONIC, the clock of every record.
int64_t MonotonicNanoseconds();

class FlightRecorder {
 public:
  // Errors: the directory or the file in it cannot be made. Never fails without a directory.
  static absl::StatusOr<std::unique_ptr<FlightRecorder>> Create(const RecorderOptions& options);
  // Marks that the rank has left the group. A mapped file stays.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // A call was made; its turn comes later. Returns what names it below. `file` is cut to its end.
  uint64_t Queued(const Fingerprint& print, int64_t bytes, const char* file, int line);
  // Its turn has come, as number `sequence` of the group.
  void Started(uint64_t call, uint64_t sequence);
  // All ranks have come to it; data moves.
  void Arrived(uint64_t call);
  void Finished(uint64_t call, bool ok, int64_t bytes_sent, int64_t bytes_received);
  // The first failure counts. `blamed`: ranks of the group, may be empty.
  void Failed(uint64_t call, FailureKind kind, std::span<const int> blamed, std::string_view text);
  // Tear-down has begun.
  void Leaving() { SetLife(GroupLife::kLeaving); }

  // Makes the dump and returns its path; with a directory it exists already. The file is replaced
  // at one go, so a reader never sees half of it.
  absl::StatusOr<std::string> Dump();
  // Where dumps are or would be.
  const std::string& directory() const { return directory_; }

 private:
  class Change;

  FlightRecorder(const RecorderOptions& options, std::string directory);

  absl::Status MapFile();
  void WriteHeader(const RecorderOptions& options);
  int64_t SlotOffset(uint64_t call) const;
  void SetLife(GroupLife life);

  const int32_t records_;
  const int64_t bytes_;
  const std::string directory_;
  const std::string file_name_;
  bool mapped_file_ = false;
  std::atomic<bool> failed_ = false;
  std::byte* memory_ = nullptr;  // mapped; words are read and written atomically
  std::atomic<uint64_t> calls_ = 0;
  std::mutex dump_mutex_;  // one file is written at a time
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_RECORDER_H_
