// Threads: the team that runs a kernel's loops.
//
// Debian's oneDNN runs on OpenMP, and two pools on the same cores fight, so our kernels
// use the same OpenMP team. ThreadSanitizer and Clang builds use std::thread instead
// (--define=threads=std), because libgomp's synchronisation is invisible to the sanitizer.
#ifndef PLINTH_HARDWARE_THREADING_THREADS_H_
#define PLINTH_HARDWARE_THREADING_THREADS_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace plinth {

// A fixed number of threads, the caller's included. One ParallelFor at a time runs on a
// team; calls from inside a body run that body's loop serially.
class Threads {
 public:
  // count >= 1.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }

  // Calls body(begin, end) over disjoint ranges that cover [0, n), at most `count()` at a
  // time, and returns when all are done. Ranges hold at least `grain` items (>= 1; the last
  // may hold fewer), so small loops stay on the calling thread. Which thread runs which
  // range depends only on (n, grain, count()). A result must not depend on the split:
  // a body that reduces does so within one item.
  void ParallelFor(int64_t n, int64_t grain,
                   const std::function<void(int64_t begin, int64_t end)>& body);

  // Ends the helpers that wait for the calling thread's next loop; that loop starts new ones,
  // which costs about as much as it takes to start a thread. For a thread that will run no loop
  // for a while: OpenMP helpers spin between loops only while all teams of the process together
  // have no more threads than there are CPUs, so a team that nobody uses slows the others.
  static void LeaveTeam();

 private:
  class Impl;
  const int count_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_THREADING_THREADS_H_
