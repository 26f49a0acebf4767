#include "plinth/comm/recorder/recorder.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/recorder/dump_file.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

int64_t NowOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

std::atomic_ref<uint64_t> WordAt(std::byte* memory, int64_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory + offset));
}

// Word by word, the checksum last. Relaxed: the checksum tells a reader what fits together.
template <typename Block>
void PublishBlock(Block& block, std::byte* memory, int64_t offset) {
  block.checksum = BlockChecksum(block);
  uint64_t words[sizeof(Block) / sizeof(uint64_t)];
  std::memcpy(words, &block, sizeof(block));
  for (const uint64_t word : words) {
    WordAt(memory, offset).store(word, std::memory_order_relaxed);
    offset += sizeof(word);
  }
}

// The rest stays zero.
template <size_t kRoom>
void CopyText(std::string_view text, char (&to)[kRoom]) {
  const size_t bytes = std::min(text.size(), kRoom - 1);
  std::memset(to, 0, kRoom);
  std::memcpy(to, text.data(), bytes);
}

// Word of the record that the state is a byte of, and which.
constexpr int64_t kStateOffset = offsetof(CallRecord, state);
constexpr int64_t kStateWord = kStateOffset / 8 * 8;
constexpr int kStateShift = static_cast<int>(kStateOffset % 8 * 8);

std::string HostName() {
  char name[64] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

// Changes words of the record of a call where they lie, and its checksum last.
class FlightRecorder::Change {
 public:
  Change(const FlightRecorder& recorder, uint64_t call)
      : record_(recorder.memory_ + recorder.SlotOffset(call)),
        valid_(Word(offsetof(CallRecord, ordinal)).load(std::memory_order_relaxed) == call),
        sum_(Word(offsetof(CallRecord, checksum)).load(std::memory_order_relaxed)) {}
  ~Change() {
    if (valid_) Word(offsetof(CallRecord, checksum)).store(sum_, std::memory_order_relaxed);
  }

  // False when the slot holds a later call by now.
  bool valid() const { return valid_; }
  void Set(int64_t offset, uint64_t value) {
    const auto i = static_cast<size_t>(offset) / sizeof(uint64_t);
    sum_ +=
        ChecksumOfWord(value, i) - ChecksumOfWord(Word(offset).load(std::memory_order_relaxed), i);
    Word(offset).store(value, std::memory_order_relaxed);
  }
  void SetState(CallState state) {
    const uint64_t others =
        Word(kStateWord).load(std::memory_order_relaxed) & ~(uint64_t{0xff} << kStateShift);
    Set(kStateWord, others | static_cast<uint64_t>(state) << kStateShift);
  }

 private:
  std::atomic_ref<uint64_t> Word(int64_t offset) const { return WordAt(record_, offset); }

  std::byte* const record_;
  const bool valid_;
  uint64_t sum_;
};

std::string DefaultDumpDirectory(std::string_view run) {
  const char* temporary = std::getenv("TEST_TMPDIR");
  if (temporary == nullptr) temporary = std::getenv("TMPDIR");
  const std::string parent = temporary == nullptr || *temporary == 0 ? "/tmp" : temporary;
  if (run.empty()) return absl::StrCat(parent, "/plinth-comm-user", geteuid());
  std::string name(run.substr(0, 64));
  std::replace(name.begin(), name.end(), '/', '_');
  return absl::StrCat(parent, "/plinth-comm-", name);
}

int64_t MonotonicNanoseconds() { return NowOf(CLOCK_MONOTONIC); }

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::Create(
    const RecorderOptions& options) {
  CHECK_GE(options.records, 1);
  CHECK_LE(options.records, kMostRecords);
  const bool in_file = !options.directory.empty();
  std::unique_ptr<FlightRecorder> recorder(
      new FlightRecorder(options, in_file ? options.directory : DefaultDumpDirectory(options.run)));
  if (in_file) {
    RETURN_IF_ERROR(recorder->MapFile());
  } else {
    void* memory =
        mmap(nullptr, recorder->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED) << std::strerror(errno);
    recorder->memory_ = static_cast<std::byte*>(memory);
  }
  recorder->WriteHeader(options);
  return recorder;
}

FlightRecorder::FlightRecorder(const RecorderOptions& options, std::string directory)
    : records_(options.records),
      bytes_(DumpBytes(options.records)),
      directory_(std::move(directory)),
      file_name_(DumpFileName(options.run, options.group, options.group_id, options.rank)) {}

FlightRecorder::~FlightRecorder() {
  if (memory_ == nullptr) return;
  SetLife(GroupLife::kLeft);
  munmap(memory_, bytes_);
}

absl::Status FlightRecorder::MapFile() {
  RETURN_IF_ERROR(MakeDumpDirectory(directory_));
  const std::string path = absl::StrCat(directory_, "/", file_name_);
  ASSIGN_OR_RETURN(const FreshFile file, CreateFreshFile(path, bytes_));
  RETURN_IF_ERROR(Publish(file, path));
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", path, ": ", std::strerror(errno)));
  }
  memory_ = static_cast<std::byte*>(memory);
  mapped_file_ = true;
  return absl::OkStatus();
}

void FlightRecorder::WriteHeader(const RecorderOptions& options) {
  DumpHeader header;
  std::memcpy(header.magic, kDumpMagic, sizeof(kDumpMagic));
  header.version = kDumpVersion;
  header.record_bytes = sizeof(CallRecord);
  header.records = records_;
  header.rank = options.rank;
  header.size = static_cast<int32_t>(options.world_ranks.size());
  header.group_id = options.group_id;
  header.process = getpid();
  header.process_start = ProcessStartTicks(getpid()).value_or(0);
  header.monotonic_ns = NowOf(CLOCK_MONOTONIC);
  header.realtime_ns = NowOf(CLOCK_REALTIME);
  CopyText(BootId(), header.boot);
  CopyText(HostName(), header.host);
  CopyText(options.group, header.group);
  CopyText(options.run, header.run);
  CopyText(options.transport, header.transport);
  if (header.size <= WorldRanks::kMost) {
    WorldRanks world;
    std::copy(options.world_ranks.begin(), options.world_ranks.end(), world.ranks);
    PublishBlock(world, memory_, kWorldRanksOffset);
  }
  SetLife(GroupLife::kMember);
  PublishBlock(header, memory_, 0);
}

void FlightRecorder::SetLife(GroupLife life) {
  WordAt(memory_, kLiveStateOffset + offsetof(LiveState, life_ns))
      .store(MonotonicNanoseconds(), std::memory_order_relaxed);
  WordAt(memory_, kLiveStateOffset + offsetof(LiveState, life))
      .store(static_cast<uint64_t>(life), std::memory_order_release);
}

uint64_t FlightRecorder::Queued(const Fingerprint& print, int64_t bytes, const char* file,
                                int line) {
  CallRecord record;
  record.ordinal = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  record.count = print.count;
  record.bytes = bytes;
  record.queued_ns = MonotonicNanoseconds();
  record.root = print.root;
  record.line = line;
  record.op = static_cast<uint8_t>(print.op);
  record.reduce = static_cast<uint8_t>(print.reduce);
  record.dtype = static_cast<uint8_t>(print.dtype);
  record.state = static_cast<uint8_t>(CallState::kQueued);
  const std::string_view path(file);
  CopyText(path.substr(path.size() - std::min(path.size(), sizeof(record.file) - 1)), record.file);
  PublishBlock(record, memory_, SlotOffset(record.ordinal));
  // Another thread may store an older number over this one: it is behind until the next call.
  WordAt(memory_, kLiveStateOffset + offsetof(LiveState, calls_made))
      .store(record.ordinal, std::memory_order_relaxed);
  return record.ordinal;
}

void FlightRecorder::Started(uint64_t call, uint64_t sequence) {
  Change change(*this, call);
  if (!change.valid()) return;
  change.Set(offsetof(CallRecord, sequence), sequence);
  change.Set(offsetof(CallRecord, started_ns), MonotonicNanoseconds());
  change.SetState(CallState::kStarted);
}

void FlightRecorder::Arrived(uint64_t call) {
  Change change(*this, call);
  if (!change.valid()) return;
  change.Set(offsetof(CallRecord, arrived_ns), MonotonicNanoseconds());
  change.SetState(CallState::kArrived);
}

void FlightRecorder::Finished(uint64_t call, bool ok, int64_t bytes_sent, int64_t bytes_received) {
  Change change(*this, call);
  if (!change.valid()) return;
  change.Set(offsetof(CallRecord, finished_ns), MonotonicNanoseconds());
  change.Set(offsetof(CallRecord, bytes_sent), bytes_sent);
  change.Set(offsetof(CallRecord, bytes_received), bytes_received);
  change.SetState(ok ? CallState::kDone : CallState::kFailed);
}

int64_t FlightRecorder::SlotOffset(uint64_t call) const {
  return kDumpPrologueBytes + static_cast<int64_t>(call % records_ * sizeof(CallRecord));
}

void FlightRecorder::Failed(uint64_t call, FailureKind kind, std::span<const int> blamed,
                            std::string_view text) {
  if (failed_.exchange(true)) return;
  FailureRecord failure;
  failure.at_ns = MonotonicNanoseconds();
  if (WordAt(memory_, SlotOffset(call) + offsetof(CallRecord, ordinal)).load() == call) {
    failure.sequence = WordAt(memory_, SlotOffset(call) + offsetof(CallRecord, sequence)).load();
  }
  failure.kind = static_cast<uint32_t>(kind);
  failure.blamed_count = static_cast<int32_t>(std::min<size_t>(blamed.size(), kMostBlamed));
  std::copy_n(blamed.begin(), failure.blamed_count, failure.blamed);
  CopyText(text, failure.text);
  PublishBlock(failure, memory_, kFailureOffset);
}

absl::StatusOr<std::string> FlightRecorder::Dump() {
  const std::string path = absl::StrCat(directory_, "/", file_name_);
  if (mapped_file_) return path;
  std::lock_guard lock(dump_mutex_);
  std::vector<uint64_t> words(bytes_ / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] =
        WordAt(memory_, static_cast<int64_t>(i * sizeof(uint64_t))).load(std::memory_order_relaxed);
  }
  RETURN_IF_ERROR(MakeDumpDirectory(directory_));
  ASSIGN_OR_RETURN(const FreshFile file, CreateFreshFile(path, bytes_));
  const auto* data = reinterpret_cast<const char*>(words.data());
  for (int64_t done = 0; done < bytes_;) {
    const ssize_t written = pwrite(file.fd.get(), data + done, bytes_ - done, done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      unlink(file.temporary_path.c_str());
      return absl::UnavailableError(
          absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
    }
    done += written;
  }
  RETURN_IF_ERROR(Publish(file, path));
  return path;
}

}  // namespace plinth::comm
