#ifndef PLINTH_COMM_DOCTOR_MEDIAN_H_
#define PLINTH_COMM_DOCTOR_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plinth::comm {

// The upper one of two in the middle; 0 of no values.
inline int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DOCTOR_MEDIAN_H_
