#include "plinth/hardware/base/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <utility>

#include "plinth/hardware/base/one_line.h"

namespace plinth {
namespace {

// A function-local static: set once at start, read by every thread.
std::string& Prefix() {
  static std::string& prefix = *new std::string;
  return prefix;
}

}  // namespace

void SetLogPrefix(std::string prefix) { Prefix() = std::move(prefix); }

namespace internal {

LogMessage::~LogMessage() {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char head[48];
  std::snprintf(head, sizeof(head), "%c %02d:%02d:%02d.%03d ", "IWE"[static_cast<int>(severity_)],
                local.tm_hour, local.tm_min, local.tm_sec, static_cast<int>(now.tv_usec / 1000));
  std::string line = head;
  if (!Prefix().empty()) line += "[" + Prefix() + "] ";
  line += OneLine(stream_.str()) + "\n";
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace internal
}  // namespace plinth
