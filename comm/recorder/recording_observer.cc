#include "plinth/comm/recorder/recording_observer.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "plinth/comm/recorder/blame.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/rng.h"

namespace plinth::comm {
namespace {

// A call is named by its group and its number there.
constexpr int kOrdinalBits = 48;
constexpr uint64_t kOrdinalMask = (uint64_t{1} << kOrdinalBits) - 1;

RecordingOptions WithEnvironment(RecordingOptions options) {
  const char* directory = std::getenv("PLINTH_COMM_DUMP_DIR");
  if (options.directory.empty() && directory != nullptr) options.directory = directory;
  return options;
}

std::unique_ptr<FlightRecorder> MakeRecorder(RecorderOptions options) {
  auto recorder = FlightRecorder::Create(options);
  if (recorder.ok()) return *std::move(recorder);
  LOG(WARNING) << recorder.status().message() << "; flight records stay in memory";
  options.directory.clear();
  recorder = FlightRecorder::Create(options);
  CHECK_OK(recorder.status());
  return *std::move(recorder);
}

}  // namespace

RecordingObserver::RecordingObserver(RecordingOptions options)
    : options_(WithEnvironment(std::move(options))) {}

uint32_t RecordingObserver::GroupFormed(const GroupInfo& info) {
  auto group = std::make_unique<Group>();
  group->world_ranks = info.world_ranks;
  group->rank = info.rank;
  group->recorder = MakeRecorder({.group = info.name.empty() ? "world" : info.name,
                                  .group_id = NextGroupId(info),
                                  .rank = info.rank,
                                  .world_ranks = info.world_ranks,
                                  .run = options_.run,
                                  .transport = options_.transport,
                                  .directory = options_.directory,
                                  .records = options_.records});
  std::lock_guard lock(mutex_);
  for (uint32_t number = 0; number < kMostGroups; ++number) {
    if (groups_[number].load() != nullptr) continue;
    groups_[number].store(group.get());
    owned_.push_back(std::move(group));
    return number;
  }
  return kMostGroups;
}

uint64_t RecordingObserver::NextGroupId(const GroupInfo& info) {
  std::lock_guard lock(mutex_);
  const uint64_t times = formed_[{info.name, info.world_ranks}]++;
  if (info.name.empty() && times == 0) return 0;
  uint64_t id = RngKey(times, info.name);
  for (const int rank : info.world_ranks) id = RandomBits(id, static_cast<uint64_t>(rank), times);
  return id;
}

void RecordingObserver::GroupLeaving(uint32_t number) {
  if (Group* group = Find(static_cast<uint64_t>(number) << kOrdinalBits)) {
    group->recorder->Leaving();
  }
}

void RecordingObserver::GroupEnded(uint32_t number) {
  if (number >= kMostGroups) return;
  std::lock_guard lock(mutex_);
  Group* group = groups_[number].exchange(nullptr);
  owned_.erase(std::remove_if(owned_.begin(), owned_.end(),
                              [group](const auto& owned) { return owned.get() == group; }),
               owned_.end());
}

RecordingObserver::Group* RecordingObserver::Find(uint64_t call) const {
  const uint64_t number = call >> kOrdinalBits;
  return number < kMostGroups ? groups_[number].load(std::memory_order_acquire) : nullptr;
}

uint64_t RecordingObserver::Queued(uint32_t number, const CollectiveCall& call) {
  const uint64_t high = static_cast<uint64_t>(number) << kOrdinalBits;
  Group* group = Find(high);
  if (group == nullptr) return high;
  const int64_t bytes = std::max(call.in.bytes(), call.out.bytes());
  return high | (group->recorder->Queued(call.print, bytes, call.site.file, call.site.line) &
                 kOrdinalMask);
}

void RecordingObserver::Started(uint64_t call, uint64_t sequence) {
  if (Group* group = Find(call)) group->recorder->Started(call & kOrdinalMask, sequence);
}

void RecordingObserver::Arrived(uint64_t call) {
  if (Group* group = Find(call)) group->recorder->Arrived(call & kOrdinalMask);
}

void RecordingObserver::Finished(uint64_t call, const absl::Status& status, int64_t bytes_sent,
                                 int64_t bytes_received) {
  Group* group = Find(call);
  if (group == nullptr) return;
  const uint64_t ordinal = call & kOrdinalMask;
  group->recorder->Finished(ordinal, status.ok(), bytes_sent, bytes_received);
  if (status.ok() || status.code() == absl::StatusCode::kInvalidArgument) return;
  // From here on the group is finished, and time does not matter.
  if (!std::exchange(group->dumped, true)) Report(*group, ordinal, status);
}

void RecordingObserver::Report(Group& group, uint64_t ordinal, const absl::Status& status) const {
  const Blame blame = BlameOf(status);
  std::vector<int> ranks;
  for (const int world : blame.world_ranks) {
    const auto& all = group.world_ranks;
    const auto found = std::find(all.begin(), all.end(), world);
    if (found != all.end()) ranks.push_back(static_cast<int>(found - all.begin()));
  }
  group.recorder->Failed(ordinal, blame.kind, ranks, std::string(status.message()));
  const absl::StatusOr<std::string> path = group.recorder->Dump();
  if (!path.ok()) {
    LOG(WARNING) << path.status().message();
    return;
  }
  const bool found_by_all = blame.kind == FailureKind::kMismatch;
  if (blame.kind == FailureKind::kAborted || (found_by_all && group.rank != 0)) return;
  LOG(INFO) << "flight records are in " << group.recorder->directory()
            << ", for bazel run //comm:doctor";
}

std::string RecordingObserver::directory() const {
  return options_.directory.empty() ? DefaultDumpDirectory(options_.run) : options_.directory;
}

}  // namespace plinth::comm
