// Hangs a flight recorder on every group of a process, and makes the dumps when a group fails.
//
//   RecordingObserver recorders({.run = options.run_id, .directory = "/var/dumps"});
#ifndef PLINTH_COMM_RECORDER_RECORDING_OBSERVER_H_
#define PLINTH_COMM_RECORDER_RECORDING_OBSERVER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/call/observer.h"
#include "plinth/comm/recorder/recorder.h"

namespace plinth::comm {

struct RecordingOptions {
  std::string run;        // tells launches apart; may be empty
  std::string transport;  // for the reader of the dumps
  // Empty: the value of PLINTH_COMM_DUMP_DIR; without one, dumps appear in DefaultDumpDirectory
  // when a group fails.
  std::string directory;
  int32_t records = 1024;  // calls kept for each group
};

// The rank that found a failure, or rank 0 where all did, logs where the dumps are.
// Thread-safe. A directory that cannot be written to is logged once for each group; its recorder
// then stays in memory.
class RecordingObserver final : public CallObserver {
 public:
  explicit RecordingObserver(RecordingOptions options);

  uint32_t GroupFormed(const GroupInfo& group) override;
  void GroupLeaving(uint32_t group) override;
  void GroupEnded(uint32_t group) override;
  uint64_t Queued(uint32_t group, const CollectiveCall& call) override;
  void Started(uint64_t call, uint64_t sequence) override;
  void Arrived(uint64_t call) override;
  void Finished(uint64_t call, const absl::Status& status, int64_t bytes_sent,
                int64_t bytes_received) override;

  // Where dumps are or would be.
  std::string directory() const;

 private:
  // Groups beyond are not recorded.
  static constexpr uint32_t kMostGroups = 1024;
  struct Group {
    std::unique_ptr<FlightRecorder> recorder;
    std::vector<int> world_ranks;
    int rank = 0;
    bool dumped = false;  // written by the call that fails; those of a group never overlap
  };

  Group* Find(uint64_t call) const;
  // Equal on the ranks of the group; other than of earlier groups of its name and ranks.
  uint64_t NextGroupId(const GroupInfo& group);
  void Report(Group& group, uint64_t ordinal, const absl::Status& status) const;

  const RecordingOptions options_;
  std::mutex mutex_;  // guards forming and ending; calls look groups up without it
  std::array<std::atomic<Group*>, kMostGroups> groups_ = {};
  std::vector<std::unique_ptr<Group>> owned_;
  std::map<std::pair<std::string, std::vector<int>>, uint64_t> formed_;  // how often
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_RECORDING_OBSERVER_H_
