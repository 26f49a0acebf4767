#include "plinth/hardware/base/stop_signal.h"

#include <ctime>

#include "plinth/hardware/base/check.h"

namespace plinth {
namespace {

// Takes a pending signal of `signals`; 0 when there is none.
int TakePending(const sigset_t& signals) {
  const timespec no_wait = {};
  const int signal = sigtimedwait(&signals, nullptr, &no_wait);
  return signal > 0 ? signal : 0;
}

}  // namespace

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals_, signal);
  struct sigaction hang_up = {};
  CHECK_EQ(sigaction(SIGHUP, nullptr, &hang_up), 0);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &signals_, &old_mask_), 0);
}

StopSignal::~StopSignal() {
  // What came after the last question came too late: it must not end a process that is done.
  if (received_ == 0) {
    while (TakePending(signals_) != 0) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

int StopSignal::received() { return received_ != 0 ? received_ : Take(TakePending(signals_)); }

int StopSignal::Wait() {
  int signal = received_;
  while (signal <= 0) signal = sigwaitinfo(&signals_, nullptr);  // EINTR: a debugger
  return Take(signal);
}

int StopSignal::Take(int signal) {
  received_ = signal;
  if (signal != 0) pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  return signal;
}

}  // namespace plinth
