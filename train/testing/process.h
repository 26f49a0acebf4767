// Process: a program that a test runs, signals and waits for.
#ifndef PLINTH_TRAIN_TESTING_PROCESS_H_
#define PLINTH_TRAIN_TESTING_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "plinth/config/run.pb.h"

namespace plinth::train::testing {

// Killed and waited for by its destructor. Used by one thread.
class Process {
 public:
  // Runs `arguments` (the first is the program) with `environment` added. What it writes to
  // stderr goes to the file `stderr_path`; stdout is dropped.
  Process(const std::vector<std::string>& arguments, const std::string& stderr_path,
          const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // The exit code, or minus the signal that ended it. CHECKs that it ends within a minute.
  int Wait();
  // Waits at most `limit`; true when it has ended (Wait tells how).
  bool EndsWithin(absl::Duration limit);

 private:
  pid_t pid_;
  bool ended_ = false;
  int status_ = 0;
};

// The training program as a test finds it, with a config written beside the run directory.
std::vector<std::string> TrainCommand(const config::RunConfig& config);

std::string ReadText(const std::string& path);

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_PROCESS_H_
