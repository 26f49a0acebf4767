#include "plinth/hardware/base/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace plinth {

ProgressLine::~ProgressLine() {
  if (shown_) std::fputc('\n', stderr);
}

void ProgressLine::Show(const std::string& text) {
  const Clock::time_point now = Clock::now();
  if (now < next_ || ::isatty(STDERR_FILENO) == 0) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

}  // namespace plinth
