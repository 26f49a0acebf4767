// StopSignal: SIGTERM, SIGINT and SIGHUP as a wish to stop in good order.
#ifndef PLINTH_HARDWARE_BASE_STOP_SIGNAL_H_
#define PLINTH_HARDWARE_BASE_STOP_SIGNAL_H_

#include <csignal>

namespace plinth {

// From construction on the signals stay pending until received() or Wait() takes the first; the
// next one ends the process as it would by default, for a user who does not want to wait. A
// SIGHUP that the process was started to ignore (nohup) stays ignored.
//
// There is no handler on purpose: a BLAS may use the stack pointer as a plain register while it
// computes, and the frame of a handler that interrupts it there overwrites the caller's data.
// Threads  made and asked by one thread; those started while it lives leave the signals to it.
//          Make it before any other thread starts.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Number of the first signal that came, or 0. Does not wait.
  int received();
  // The same, once there is one.
  int Wait();

 private:
  int Take(int signal);

  sigset_t signals_, old_mask_;
  int received_ = 0;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_STOP_SIGNAL_H_
