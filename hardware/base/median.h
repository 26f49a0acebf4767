// The value in the middle, for timings.
#ifndef PLINTH_HARDWARE_BASE_MEDIAN_H_
#define PLINTH_HARDWARE_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace plinth {

// The upper one of two in the middle; 0 of no values. Threads: a pure function.
template <typename T>
T Median(std::vector<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_MEDIAN_H_
