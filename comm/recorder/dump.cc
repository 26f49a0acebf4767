#include "plinth/comm/recorder/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/net/socket.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int64_t kMostNumber = int64_t{1} << 60;    // of times since boot and of sequences
constexpr int64_t kMostRealtime = int64_t{1} << 62;  // of the time of day: until the year 2116
constexpr int32_t kMostRanks = 1 << 20;

bool InRange(int64_t value, int64_t least, int64_t end) { return value >= least && value < end; }

template <size_t kRoom>
std::string TextOf(const char (&from)[kRoom]) {
  std::string text(from, strnlen(from, kRoom));
  for (char& c : text) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return text;
}

template <typename Block>
Block BlockAt(std::span<const std::byte> bytes, int64_t offset) {
  Block block;
  std::memcpy(&block, bytes.data() + offset, sizeof(block));
  return block;
}

absl::Status CheckHeader(const DumpHeader& header) {
  if (header.version != kDumpVersion) {
    return absl::UnimplementedError(absl::StrCat("a dump of version ", header.version,
                                                 ", this program reads version ", kDumpVersion));
  }
  if (header.checksum != BlockChecksum(header)) {
    return absl::DataLossError("its header is damaged");
  }
  const bool sane =
      header.record_bytes == sizeof(CallRecord) && InRange(header.records, 1, kMostRecords + 1) &&
      InRange(header.size, 1, kMostRanks + 1) && InRange(header.rank, 0, header.size) &&
      InRange(header.process, 0, kMostNumber) && InRange(header.process_start, 0, kMostNumber) &&
      InRange(header.monotonic_ns, 0, kMostNumber) && InRange(header.realtime_ns, 0, kMostRealtime);
  return sane ? absl::OkStatus() : absl::DataLossError("its header makes no sense");
}

bool IsSane(const CallRecord& record) {
  const bool queued = record.state == static_cast<uint8_t>(CallState::kQueued);
  return InRange(static_cast<int64_t>(record.ordinal), 1, kMostNumber) &&
         InRange(static_cast<int64_t>(record.sequence), queued ? 0 : 1, kMostNumber) &&
         InRange(record.queued_ns, 0, kMostNumber) && InRange(record.started_ns, 0, kMostNumber) &&
         InRange(record.arrived_ns, 0, kMostNumber) &&
         InRange(record.finished_ns, 0, kMostNumber) && record.line >= 0 &&
         InRange(record.state, static_cast<uint8_t>(CallState::kQueued),
                 static_cast<uint8_t>(CallState::kFailed) + 1);
}

RecordedCall ToCall(const CallRecord& record) {
  RecordedCall call;
  call.print.sequence = record.sequence;
  call.print.count = record.count;
  call.print.root = record.root;
  call.print.op = static_cast<OpKind>(record.op);
  call.print.reduce = static_cast<ReduceOp>(record.reduce);
  call.print.dtype = static_cast<DType>(record.dtype);
  call.ordinal = record.ordinal;
  call.bytes = record.bytes;
  call.bytes_sent = record.bytes_sent;
  call.bytes_received = record.bytes_received;
  call.queued_ns = record.queued_ns;
  call.started_ns = record.started_ns;
  call.arrived_ns = record.arrived_ns;
  call.finished_ns = record.finished_ns;
  call.state = static_cast<CallState>(record.state);
  call.file = TextOf(record.file);
  call.line = record.line;
  return call;
}

void ReadCalls(std::span<const std::byte> bytes, int32_t records, FlightDump& dump) {
  for (int32_t slot = 0; slot < records; ++slot) {
    const int64_t offset = kDumpPrologueBytes + slot * static_cast<int64_t>(sizeof(CallRecord));
    if (offset + static_cast<int64_t>(sizeof(CallRecord)) > static_cast<int64_t>(bytes.size())) {
      dump.cut_short = true;
      break;
    }
    const auto record = BlockAt<CallRecord>(bytes, offset);
    if (record.ordinal == 0 && record.checksum == 0) continue;  // never used
    if (record.checksum != BlockChecksum(record) || !IsSane(record) ||
        record.ordinal % records != static_cast<uint64_t>(slot)) {
      ++dump.damaged_records;
      continue;
    }
    (record.sequence == 0 ? dump.queued : dump.calls).push_back(ToCall(record));
  }
  std::sort(dump.calls.begin(), dump.calls.end(), [](const RecordedCall& a, const RecordedCall& b) {
    return std::tie(a.started_ns, a.ordinal) < std::tie(b.started_ns, b.ordinal);
  });
  std::sort(dump.queued.begin(), dump.queued.end(),
            [](const RecordedCall& a, const RecordedCall& b) { return a.ordinal < b.ordinal; });
}

void ReadWorldRanks(std::span<const std::byte> bytes, FlightDump& dump) {
  const auto block = BlockAt<WorldRanks>(bytes, kWorldRanksOffset);
  if (dump.size > WorldRanks::kMost || block.checksum != BlockChecksum(block)) return;
  const auto ranks = std::span(block.ranks).first(dump.size);
  const auto sane = [](int32_t rank) { return InRange(rank, 0, kMostRanks); };
  if (std::all_of(ranks.begin(), ranks.end(), sane)) {
    dump.world_ranks.assign(ranks.begin(), ranks.end());
  }
}

void ReadFailure(std::span<const std::byte> bytes, FlightDump& dump) {
  const auto record = BlockAt<FailureRecord>(bytes, kFailureOffset);
  if (record.checksum == 0) return;
  if (record.checksum != BlockChecksum(record) || !InRange(record.at_ns, 0, kMostNumber) ||
      !InRange(static_cast<int64_t>(record.sequence), 0, kMostNumber) ||
      !InRange(record.blamed_count, 0, kMostBlamed + 1) ||
      record.kind > static_cast<uint32_t>(FailureKind::kAborted)) {
    ++dump.damaged_records;
    return;
  }
  RecordedFailure failure;
  failure.at_ns = record.at_ns;
  failure.sequence = record.sequence;
  failure.kind = static_cast<FailureKind>(record.kind);
  for (const int rank : std::span(record.blamed).first(record.blamed_count)) {
    if (InRange(rank, 0, dump.size)) failure.blamed.push_back(rank);
  }
  failure.text = TextOf(record.text);
  dump.failure = std::move(failure);
}

void ReadLiveState(std::span<const std::byte> bytes, FlightDump& dump) {
  const auto live = BlockAt<LiveState>(bytes, kLiveStateOffset);
  if (InRange(static_cast<int64_t>(live.calls_made), 0, kMostNumber)) {
    dump.calls_made = live.calls_made;
  }
  if (InRange(static_cast<int64_t>(live.life), static_cast<int64_t>(GroupLife::kMember),
              static_cast<int64_t>(GroupLife::kLeft) + 1)) {
    dump.life = static_cast<GroupLife>(live.life);
  }
  if (InRange(live.life_ns, 0, kMostNumber)) dump.life_ns = live.life_ns;
}

}  // namespace

absl::StatusOr<FlightDump> ParseDump(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(kDumpMagic) ||
      std::memcmp(bytes.data(), kDumpMagic, sizeof(kDumpMagic)) != 0) {
    return absl::DataLossError("not a flight recorder's dump");
  }
  if (static_cast<int64_t>(bytes.size()) < kDumpPrologueBytes) {
    return absl::DataLossError(absl::StrCat("cut short: ", bytes.size(), " bytes, a dump has at ",
                                            "least ", kDumpPrologueBytes));
  }
  const auto header = BlockAt<DumpHeader>(bytes, 0);
  RETURN_IF_ERROR(CheckHeader(header));
  FlightDump dump;
  dump.group = TextOf(header.group);
  dump.run = TextOf(header.run);
  dump.host = TextOf(header.host);
  dump.boot = TextOf(header.boot);
  dump.transport = TextOf(header.transport);
  dump.rank = header.rank;
  dump.size = header.size;
  dump.group_id = header.group_id;
  dump.process = header.process;
  dump.process_start = header.process_start;
  dump.monotonic_ns = header.monotonic_ns;
  dump.realtime_ns = header.realtime_ns;
  ReadLiveState(bytes, dump);
  ReadWorldRanks(bytes, dump);
  ReadFailure(bytes, dump);
  ReadCalls(bytes, header.records, dump);
  return dump;
}

absl::StatusOr<FlightDump> ReadDump(const std::string& path) {
  // A pipe or a device in the directory must not be waited for.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat stats {};
  if (!file.valid() || fstat(file.get(), &stats) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  if (!S_ISREG(stats.st_mode)) return absl::DataLossError("not a regular file");
  std::vector<std::byte> bytes(std::clamp<int64_t>(stats.st_size, 0, DumpBytes(kMostRecords)));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  ASSIGN_OR_RETURN(FlightDump dump, ParseDump(std::span(bytes).first(done)));
  dump.path = path;
  return dump;
}

absl::StatusOr<DumpDirectory> ReadDumpDirectory(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (absl::EndsWith(entry->path().string(), kDumpSuffix)) paths.push_back(entry->path());
  }
  if (error) return absl::NotFoundError(absl::StrCat(directory, ": ", error.message()));
  if (paths.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": no dumps in it (files named *", kDumpSuffix, ")"));
  }
  std::sort(paths.begin(), paths.end());
  DumpDirectory result;
  for (const std::string& path : paths) {
    absl::StatusOr<FlightDump> dump = ReadDump(path);
    if (dump.ok()) {
      result.dumps.push_back(*std::move(dump));
    } else {
      result.unreadable.push_back({path, std::string(dump.status().message())});
    }
  }
  return result;
}

}  // namespace plinth::comm
