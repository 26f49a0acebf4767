#include "plinth/hardware/probe/root_fs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::probe {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;

// Closes the descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status SystemError(int error, const std::string& path) {
  if (error == ENOTDIR) error = ENOENT;
  return absl::ErrnoToStatus(error, path);
}

}  // namespace

RootFs::RootFs(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  if (root_.empty()) root_ = "/";
}

std::string RootFs::Resolve(std::string_view path) const {
  return live() ? std::string(path) : root_ + std::string(path);
}

absl::StatusOr<std::string> RootFs::Read(std::string_view path) const {
  const std::string full = Resolve(path);
  const Descriptor file(full);
  if (file.get() < 0) return SystemError(errno, full);
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t n = read(file.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, full);
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(full, ": larger than 4 MiB"));
    }
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

absl::StatusOr<std::optional<std::string>> RootFs::ReadIfPresent(std::string_view path) const {
  absl::StatusOr<std::string> text = Read(path);
  if (text.ok()) return std::optional<std::string>(*std::move(text));
  if (absl::IsNotFound(text.status())) return std::optional<std::string>();
  return text.status();
}

absl::StatusOr<std::optional<int64_t>> RootFs::ReadInt(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfPresent(path));
  if (!text.has_value()) return std::optional<int64_t>();
  const std::optional<int64_t> value = ParseInt(*text);
  if (!value.has_value()) return Malformed(path, "an integer", *text);
  return value;
}

bool RootFs::IsDirectory(std::string_view path) const {
  std::error_code ignored;
  return std::filesystem::is_directory(Resolve(path), ignored);
}

std::vector<std::string> RootFs::List(std::string_view path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(Resolve(path), error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string RootFs::LinkName(std::string_view path) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(Resolve(path), error);
  return error ? std::string() : target.filename().string();
}

std::optional<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

absl::Status Malformed(std::string_view path, std::string_view expected, std::string_view text) {
  const std::string shown = absl::CEscape(std::string(text.substr(0, 80)));
  return absl::InvalidArgumentError(std::string(path) + ": expected " + std::string(expected) +
                                    ", got \"" + shown + (text.size() > 80 ? "...\"" : "\""));
}

}  // namespace plinth::probe
