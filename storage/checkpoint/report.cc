#include "plinth/storage/checkpoint/report.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/io/checksum.h"

namespace plinth::storage {
namespace {

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenPath(const std::string& path) {
  ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(path));
  return CheckpointReader::Open(found.dir);
}

std::string ShapeText(const TensorRecord& tensor) {
  return "[" + absl::StrJoin(tensor.shape(), ",") + "]";
}

}  // namespace

absl::StatusOr<InspectReport> Inspect(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, OpenPath(path));
  InspectReport report;
  report.set_dir(reader->dir());
  *report.mutable_manifest() = reader->manifest();
  return report;
}

absl::StatusOr<VerifyReport> VerifyCheckpoint(const std::string& path, bool show_progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, OpenPath(path));
  VerifyReport report;
  report.set_dir(reader->dir());
  const auto progress = [&](const FileRecord& file) {
    if (!show_progress) return;
    std::fprintf(stderr, "reading %s (%.1f MB)\n", file.name().c_str(),
                 static_cast<double>(file.bytes()) / 1e6);
  };
  for (std::string& line : reader->FindDamage(progress)) report.add_damage(std::move(line));
  report.set_ok(report.damage().empty());
  return report;
}

std::string ToText(const InspectReport& report) {
  const CheckpointManifest& m = report.manifest();
  const CursorRecord& cursor = m.cursor();
  std::string out = absl::StrFormat("checkpoint  %s\nformat      %d\nstep        %d\n",
                                    report.dir(), m.format_version(), m.step());
  out += absl::StrFormat("rng seed    %d\n", m.rng_seed());
  out += absl::StrFormat("data cursor epoch %d, sample %d (sequence length %d, dataset %s)\n",
                         cursor.epoch(), cursor.sample(), cursor.sequence_length(),
                         ChecksumText(cursor.dataset_checksum()));
  for (const CounterRecord& c : m.counters()) {
    out += absl::StrFormat("%-11s %d\n", c.name(), c.value());
  }
  for (const ScalarRecord& s : m.scalars()) {
    out += absl::StrFormat("%-11s %g\n", s.name(), s.value());
  }
  out += absl::StrFormat("config      %d bytes of textproto\n", m.config_text().size());

  out += absl::StrFormat("\n%-40s %16s  %s\n", "file", "bytes", "xxh3");
  for (const auto* files : {&m.shards(), &m.tokenizer_files()}) {
    for (const FileRecord& file : *files) {
      out +=
          absl::StrFormat("%-40s %16d  %s\n", file.name(), file.bytes(), ChecksumText(file.xxh3()));
    }
  }
  size_t width = 6;
  for (const TensorRecord& tensor : m.tensors()) width = std::max(width, tensor.name().size());
  out += absl::StrFormat("\n%-*s  %-7s %6s  %s\n", width, "tensor", "dtype", "slices", "shape");
  for (const TensorRecord& tensor : m.tensors()) {
    out += absl::StrFormat("%-*s  %-7s %6d  %s\n", width, tensor.name(), tensor.dtype(),
                           tensor.slices_size(), ShapeText(tensor));
  }
  return out;
}

std::string ToText(const VerifyReport& report) {
  if (report.ok()) return report.dir() + ": every checksum holds\n";
  return absl::StrFormat("%s: damaged\n  %s\n", report.dir(),
                         absl::StrJoin(report.damage(), "\n  "));
}

std::string ToJson(const google::protobuf::Message& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(report, &json, options);
  CHECK(status.ok()) << std::string(status.message());  // our own message: strings are UTF-8
  return json + "\n";
}

}  // namespace plinth::storage
