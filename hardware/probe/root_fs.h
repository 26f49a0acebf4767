// Reads small text files of /proc and /sys below a root directory.
//
// Everything the probe learns from files goes through here, so that a test, or a copy of
// another machine's /proc and /sys, can stand in for the live one. Thread-safe.
#ifndef PLINTH_HARDWARE_PROBE_ROOT_FS_H_
#define PLINTH_HARDWARE_PROBE_ROOT_FS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::probe {

class RootFs {
 public:
  // `root` is prepended to every path; "/" is the live system.
  explicit RootFs(std::string root = "/");

  bool live() const { return root_ == "/"; }
  const std::string& root() const { return root_; }
  // Where `path` (absolute, as the machine knows it) lies on this machine.
  std::string Resolve(std::string_view path) const;

  // Whole text without trailing white space. kNotFound when there is no such file (or a
  // parent is missing), kResourceExhausted beyond 4 MiB, else what the system said.
  absl::StatusOr<std::string> Read(std::string_view path) const;
  // As Read, but nullopt when there is no such file: absence is a fact, not an error.
  absl::StatusOr<std::optional<std::string>> ReadIfPresent(std::string_view path) const;
  // A decimal integer; nullopt when the file is absent; kInvalidArgument naming file, what was
  // expected and what was found when it holds anything else.
  absl::StatusOr<std::optional<int64_t>> ReadInt(std::string_view path) const;

  bool IsDirectory(std::string_view path) const;
  // Names in a directory, sorted; empty when there is no such directory.
  std::vector<std::string> List(std::string_view path) const;
  // Last component of a symbolic link's target; empty when it is no link.
  std::string LinkName(std::string_view path) const;

 private:
  std::string root_;
};

// Decimal integer that fills all of `text`; nullopt otherwise.
std::optional<int64_t> ParseInt(std::string_view text);
// kInvalidArgument "<path>: expected <expected>, got "<text>"", with long text cut.
absl::Status Malformed(std::string_view path, std::string_view expected, std::string_view text);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_ROOT_FS_H_
