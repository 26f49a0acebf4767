#include "plinth/hardware/testing/sample.h"

#include <random>

namespace plinth::testing {

// The engine's output is fixed by the standard; its distributions are not.
std::vector<float> SampleFloats(int64_t n, uint64_t seed, float low, float high) {
  std::mt19937_64 engine(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(engine() >> 40) * 0x1p-24f;
  }
  return values;
}

std::vector<int32_t> SampleInts(int64_t n, uint64_t seed, int32_t low, int32_t high) {
  std::mt19937_64 engine(seed);
  std::vector<int32_t> values(static_cast<size_t>(n));
  const uint64_t range = static_cast<uint64_t>(static_cast<int64_t>(high) - low);
  for (int32_t& value : values) value = static_cast<int32_t>(low + (engine() >> 16) % range);
  return values;
}

std::vector<double> ToDouble(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<double> CentralDifferences(std::vector<double>& x, const std::function<double()>& loss,
                                       double step) {
  std::vector<double> gradient;
  gradient.reserve(x.size());
  for (double& value : x) {
    const double original = value;
    value = original + step;
    const double above = loss();
    value = original - step;
    const double below = loss();
    value = original;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

}  // namespace plinth::testing
