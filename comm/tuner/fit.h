// The cost of a link from measurements.
#ifndef PLINTH_COMM_TUNER_FIT_H_
#define PLINTH_COMM_TUNER_FIT_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "plinth/comm/tuner/cost.h"

namespace plinth::comm {

struct Sample {
  int64_t bytes;
  double us;
};

struct LinkFit {
  LinkCost cost;
  int outliers = 0;  // samples that were given no weight
  // Of those with weight: the median of |log(measured / model)|; 0.05 is 5 %.
  double relative_error = 0;
};

// The alpha and bandwidth that agree best with times of one message over one link, of sizes from
// a few bytes to as many as matter. Least squares of log(measured / model), so that a microsecond
// counts at 8 bytes and a millisecond at 64 MB; samples that are far off what most say (a
// scheduler's pause) lose their weight (Tukey's biweight). Alpha is never below zero.
// kInvalidArgument: fewer than two different sizes, a negative size, a time that is not positive
// and finite, or times that do not grow with the size.
absl::StatusOr<LinkFit> FitLink(std::span<const Sample> samples);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TUNER_FIT_H_
