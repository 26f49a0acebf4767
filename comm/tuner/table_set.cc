#include "plinth/comm/tuner/table_set.h"

#include <cerrno>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plinth/hardware/base/hash.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr size_t kMostFileBytes = 64 << 10;

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto got = static_cast<size_t>(file.gcount());
  // A folder opens, but cannot be read.
  if (!file.eof() && got == 0) return absl::ErrnoToStatus(errno == 0 ? EIO : errno, "tuning table");
  if (got > kMostFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMostFileBytes, " bytes are no tuning table"));
  }
  text.resize(got);
  return text;
}

}  // namespace

absl::StatusOr<TableSet> TableSet::Load(std::string_view files) {
  TableSet set;
  const std::vector<std::string> paths =
      absl::StrSplit(absl::string_view(files.data(), files.size()), ',', absl::SkipEmpty());
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path), _ << path);
    ASSIGN_OR_RETURN(CostTable table, ParseTable(text), _ << path);
    const std::string transport = table.transport;
    if (!set.tables_.emplace(transport, std::move(table)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a second table for ", transport, " among ", std::string(files)));
    }
  }
  return set;
}

CostTable TableSet::For(std::string_view transport) const {
  const auto found = tables_.find(transport);
  return found == tables_.end() ? DefaultTable(transport) : found->second;
}

uint64_t TableSet::Hash() const {
  uint64_t hash = Fnv1a("");
  for (const auto& [transport, table] : tables_) hash = Fnv1a(FormatTable(table), hash);
  return hash;
}

}  // namespace plinth::comm
