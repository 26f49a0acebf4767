// LOG(INFO), LOG(WARNING), LOG(ERROR): one line to stderr per state change.
//
//   LOG(INFO) << "listening on " << address;
//   -> I 20:51:07.123 [rank 1] listening on 127.0.0.1:8000
//
// Libraries do not log errors that they return. A line is written with one
// write(2), so lines of several threads or ranks never interleave. Thread-safe.
#ifndef PLINTH_HARDWARE_BASE_LOG_H_
#define PLINTH_HARDWARE_BASE_LOG_H_

#include <sstream>
#include <string>

namespace plinth {

enum class LogSeverity { kInfo, kWarning, kError };

// Text shown in brackets on every later line ("rank 1"); empty for none.
// Call once at start, before other threads log.
void SetLogPrefix(std::string prefix);

namespace internal {
class LogMessage {
 public:
  explicit LogMessage(LogSeverity severity) : severity_(severity) {}
  ~LogMessage();
  std::ostream& stream() { return stream_; }

 private:
  LogSeverity severity_;
  std::ostringstream stream_;
};
}  // namespace internal
}  // namespace plinth

#define PLINTH_LOG_INFO ::plinth::LogSeverity::kInfo
#define PLINTH_LOG_WARNING ::plinth::LogSeverity::kWarning
#define PLINTH_LOG_ERROR ::plinth::LogSeverity::kError
#define LOG(severity) ::plinth::internal::LogMessage(PLINTH_LOG_##severity).stream()

#endif  // PLINTH_HARDWARE_BASE_LOG_H_
