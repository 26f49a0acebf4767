// Inputs and gradient truth for kernel tests: the same on every run and machine.
#ifndef PLINTH_HARDWARE_TESTING_SAMPLE_H_
#define PLINTH_HARDWARE_TESTING_SAMPLE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace plinth::testing {

// `n` values spread evenly in [low, high), decided by `seed` alone.
std::vector<float> SampleFloats(int64_t n, uint64_t seed, float low = -1, float high = 1);
// `n` integers in [low, high).
std::vector<int32_t> SampleInts(int64_t n, uint64_t seed, int32_t low, int32_t high);

// The same numbers in double, for references.
std::vector<double> ToDouble(const std::vector<float>& values);

// d loss / d x by central differences: loss reads `x`, which is restored afterwards. With
// step h the truncation error is about h^2 |f'''| / 6 and the rounding error about
// 1e-16 |f| / h; the default balances them for values near 1 (relative error ~ 1e-9).
std::vector<double> CentralDifferences(std::vector<double>& x, const std::function<double()>& loss,
                                       double step = 1e-4);

}  // namespace plinth::testing

#endif  // PLINTH_HARDWARE_TESTING_SAMPLE_H_
