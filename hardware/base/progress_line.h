// ProgressLine: one line on a terminal that is rewritten while long work goes on.
//
//   ProgressLine progress;
//   for (...) progress.Show(absl::StrFormat("%d of %d MB", done, total));
#ifndef PLINTH_HARDWARE_BASE_PROGRESS_LINE_H_
#define PLINTH_HARDWARE_BASE_PROGRESS_LINE_H_

#include <chrono>
#include <string>

namespace plinth {

// Writes to stderr, at most five times a second. Silent for the first two seconds, and always
// when stderr is no terminal. Used by one thread; the destructor ends the line.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point next_ = Clock::now() + std::chrono::seconds(2);
  bool shown_ = false;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_PROGRESS_LINE_H_
