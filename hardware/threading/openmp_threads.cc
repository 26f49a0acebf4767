#include <omp.h>

#include <algorithm>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/threading/threads.h"

namespace plinth {

class Threads::Impl {};  // libgomp owns the team

Threads::Threads(int count) : count_(count) { CHECK_GE(count, 1); }
Threads::~Threads() = default;

void Threads::ParallelFor(int64_t n, int64_t grain,
                          const std::function<void(int64_t, int64_t)>& body) {
  CHECK_GE(grain, 1);
  if (n <= 0) return;
  const int64_t parts = std::clamp<int64_t>(n / grain, 1, count_);
  if (parts == 1 || omp_in_parallel()) {
    body(0, n);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    // The runtime may grant fewer threads than asked for: each takes every k-th part.
    const int64_t team = omp_get_num_threads();
    for (int64_t part = omp_get_thread_num(); part < parts; part += team) {
      body(n * part / parts, n * (part + 1) / parts);
    }
  }
}

void Threads::LeaveTeam() {
  // Refused inside a loop, where the team is in use.
  if (!omp_in_parallel()) omp_pause_resource(omp_pause_soft, omp_get_initial_device());
}

}  // namespace plinth
