// A handle on an operation that goes on in the background.
#ifndef PLINTH_COMM_COLLECTIVE_WORK_H_
#define PLINTH_COMM_COLLECTIVE_WORK_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace plinth::comm {

// An asynchronous operation. Destroying it waits for its end, as the buffers are in use till then.
// Thread-safe. May outlive its Communicator.
class Work {
 public:
  // The end of an operation, shared with the thread that runs it.
  struct State {
    std::mutex mutex;  // guards what follows
    std::condition_variable ended;
    bool done = false;
    absl::Status status;
  };

  explicit Work(std::shared_ptr<State> state);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // The operation's status once it has ended; kDeadlineExceeded when it has not after `limit`
  // (it goes on, and may be waited for again).
  absl::Status Wait(absl::Duration limit);
  // Whether it has ended, well or not. Does not block.
  bool Done() const;
  // Its status; kUnavailable while it has not ended.
  absl::Status status() const;

  // Ends the operation that `state` stands for.
  static void Finish(State& state, absl::Status status);

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_WORK_H_
