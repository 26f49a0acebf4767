#include "plinth/comm/tuner/table.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kTitle[] = "plinth comm table 1";
constexpr char kTransport[] = "transport";
constexpr size_t kMostNameBytes = 40;

struct Field {
  const char* name;
  double& value;
  bool may_be_zero;  // a time, rather than a bandwidth
};

std::vector<Field> FieldsOf(CostModel& model) {
  return {{"local_alpha_us", model.local.alpha_us, true},
          {"local_mb_per_s", model.local.mb_per_s, false},
          {"remote_alpha_us", model.remote.alpha_us, true},
          {"remote_mb_per_s", model.remote.mb_per_s, false},
          {"direct_alpha_us", model.direct.alpha_us, true},
          {"direct_mb_per_s", model.direct.mb_per_s, false},
          {"message_us", model.message_us, true},
          {"reduce_mb_per_s", model.reduce_mb_per_s, false}};
}

// What a message may quote of a line.
std::string Quoted(absl::string_view text) {
  std::string safe;
  for (const char c : text.substr(0, kMostNameBytes)) {
    safe.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  }
  return absl::StrCat("\"", safe, "\"");
}

bool IsName(absl::string_view text) {
  if (text.empty() || text.size() > kMostNameBytes) return false;
  for (const char c : text) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!allowed) return false;
  }
  return true;
}

class Parser {
 public:
  absl::StatusOr<CostTable> Run(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      RETURN_IF_ERROR(Line(line)) << "line " << line_;
    }
    if (!titled_) return absl::InvalidArgumentError(absl::StrCat("no line \"", kTitle, "\""));
    if (table_.transport.empty()) return Missing(kTransport);
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!seen_[i]) return Missing(fields_[i].name);
    }
    return table_;
  }

 private:
  static absl::Status Missing(const char* name) {
    return absl::InvalidArgumentError(absl::StrCat("no line for ", name));
  }

  absl::Status Line(absl::string_view line) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') return absl::OkStatus();
    if (!titled_) {
      titled_ = absl::StripAsciiWhitespace(line) == kTitle;
      if (titled_) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("want \"", kTitle, "\", got ", Quoted(line)));
    }
    if (words.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("want a name and a value, got ", Quoted(line)));
    }
    if (words[0] == kTransport) return Transport(words[1]);
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (words[0] == fields_[i].name) return Number(i, words[1]);
    }
    return absl::InvalidArgumentError(absl::StrCat("unknown name ", Quoted(words[0])));
  }

  absl::Status Transport(absl::string_view value) {
    if (!table_.transport.empty()) return Twice(kTransport);
    if (!IsName(value)) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(value), " names no transport"));
    }
    table_.transport = std::string(value);
    return absl::OkStatus();
  }

  absl::Status Number(size_t field, absl::string_view text) {
    if (seen_[field]) return Twice(fields_[field].name);
    double value = 0;
    const bool number = absl::SimpleAtod(text, &value) && std::isfinite(value);
    if (!number || value < 0 || (value == 0 && !fields_[field].may_be_zero)) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields_[field].name, ": want a ",
                       fields_[field].may_be_zero ? "number from 0 on" : "positive number",
                       ", got ", Quoted(text)));
    }
    seen_[field] = true;
    fields_[field].value = value;
    return absl::OkStatus();
  }

  static absl::Status Twice(const char* name) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is given twice"));
  }

  CostTable table_;
  std::vector<Field> fields_ = FieldsOf(table_.model);
  std::vector<bool> seen_ = std::vector<bool>(fields_.size());
  int64_t line_ = 0;
  bool titled_ = false;
};

}  // namespace

CostTable DefaultTable(std::string_view transport) {
  CostTable table{std::string(transport), {}};
  if (transport == "mem" || transport == "shm") {
    table.model = {.local = {1.0, 4000},
                   .remote = {1.0, 4000},
                   .direct = {1.5, 8000},
                   .message_us = 0.3,
                   .reduce_mb_per_s = 10000};
  } else if (transport == "mpi") {
    table.model = {.local = {1.0, 5000},
                   .remote = {5, 1150},
                   .direct = {1.5, 8000},
                   .message_us = 0.5,
                   .reduce_mb_per_s = 10000};
  } else {
    table.model = {.local = {12, 2500},
                   .remote = {30, 1150},
                   .direct = {1.5, 8000},
                   .message_us = 5,
                   .reduce_mb_per_s = 10000};
  }
  return table;
}

absl::StatusOr<CostTable> ParseTable(std::string_view text) {
  return Parser().Run(absl::string_view(text.data(), text.size()));
}

std::string FormatTable(const CostTable& table) {
  std::string text = absl::StrCat(kTitle, "\n", kTransport, " ", table.transport, "\n");
  CostModel model = table.model;
  for (const Field& field : FieldsOf(model)) {
    absl::StrAppend(&text, field.name, " ", absl::StrFormat("%.17g", field.value), "\n");
  }
  return text;
}

}  // namespace plinth::comm
