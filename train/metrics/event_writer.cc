#include "plinth/train/metrics/event_writer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/train/metrics/crc32c.h"
#include "plinth/train/metrics/event.pb.h"

namespace plinth::train {
namespace {

// The format stores checksums rotated and offset, so that a checksum of bytes that hold
// checksums is not degenerate.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

void AppendLittleEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

double Now() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

}  // namespace

std::string FrameRecord(std::string_view message) {
  std::string record;
  AppendLittleEndian(record, message.size(), 8);
  AppendLittleEndian(record, MaskedCrc(record), 4);
  record.append(message);
  AppendLittleEndian(record, MaskedCrc(message), 4);
  return record;
}

absl::StatusOr<EventWriter> EventWriter::Create(const std::string& directory) {
  const double now = Now();
  const std::string path =
      absl::StrCat(directory, "/events.out.tfevents.", static_cast<int64_t>(now), ".",
                   static_cast<int64_t>(::getpid()), ".plinth");
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path));
  Event first;
  first.set_wall_time(now);
  first.set_file_version("brain.Event:2");
  RETURN_IF_ERROR(file.Append(FrameRecord(first.SerializeAsString())));
  return EventWriter(std::move(file));
}

absl::Status EventWriter::Write(int64_t step, std::span<const Scalar> scalars) {
  Event event;
  event.set_wall_time(Now());
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    ScalarSummary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.name);
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  return file_.Append(FrameRecord(event.SerializeAsString()));
}

}  // namespace plinth::train
