// Rates measured several times, boiled down to two figures.
#ifndef PLINTH_HARDWARE_PERF_SAMPLES_H_
#define PLINTH_HARDWARE_PERF_SAMPLES_H_

#include <vector>

namespace plinth::perf {

struct Sample {
  double rate = 0;
  // One of our threads stood in the run queue for long: others used our CPUs.
  bool disturbed = false;
};

struct Summary {
  double median = 0;
  double best = 0;
  int samples = 0;    // taken
  int disturbed = 0;  // of them, left out of both figures unless that leaves less than half
};

// REQUIRES: at least one sample. The median of an even number is the lower middle: a rate that
// was really seen.
Summary Summarize(std::vector<Sample> samples);

}  // namespace plinth::perf

#endif  // PLINTH_HARDWARE_PERF_SAMPLES_H_
