#include "plinth/hardware/perf/samples.h"

#include <algorithm>

#include "plinth/hardware/base/check.h"

namespace plinth::perf {

Summary Summarize(std::vector<Sample> samples) {
  CHECK(!samples.empty());
  Summary summary{.samples = static_cast<int>(samples.size())};
  const auto disturbed = [](const Sample& sample) { return sample.disturbed; };
  summary.disturbed = static_cast<int>(std::count_if(samples.begin(), samples.end(), disturbed));
  if (2 * summary.disturbed <= summary.samples) {
    samples.erase(std::remove_if(samples.begin(), samples.end(), disturbed), samples.end());
  }
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.rate < b.rate; });
  summary.median = samples[(samples.size() - 1) / 2].rate;
  summary.best = samples.back().rate;
  return summary;
}

}  // namespace plinth::perf
