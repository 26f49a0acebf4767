#include "plinth/comm/collective/work.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plinth::comm {

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

Work::~Work() { Wait(absl::InfiniteDuration()).IgnoreError(); }

absl::Status Work::Wait(absl::Duration limit) {
  std::unique_lock lock(state_->mutex);
  const auto done = [this] { return state_->done; };
  // Longer ones overflow inside the standard library, and no operation takes that long.
  const absl::Duration bounded = std::min(limit, absl::Hours(24 * 365));
  if (!state_->ended.wait_for(lock, absl::ToChronoNanoseconds(bounded), done)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the operation has not ended after ", absl::FormatDuration(limit)));
  }
  return state_->status;
}

bool Work::Done() const {
  std::lock_guard lock(state_->mutex);
  return state_->done;
}

absl::Status Work::status() const {
  std::lock_guard lock(state_->mutex);
  return state_->done ? state_->status : absl::UnavailableError("the operation has not ended");
}

void Work::Finish(State& state, absl::Status status) {
  {
    std::lock_guard lock(state.mutex);
    state.done = true;
    state.status = std::move(status);
  }
  state.ended.notify_all();
}

}  // namespace plinth::comm
