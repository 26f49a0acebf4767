#include "plinth/hardware/kernels/cross_entropy/reference.h"

#include <algorithm>
#include <cmath>

namespace plinth::reference {

std::vector<double> CrossEntropy(const std::vector<double>& logits_TV,
                                 const std::vector<int32_t>& targets_T) {
  std::vector<double> loss;
  const double* x = logits_TV.data();
  for (int32_t target : targets_T) {
    const double* end = x + logits_TV.size() / targets_T.size();
    const double max = *std::max_element(x, end);
    double sum = 0;
    for (const double* logit = x; logit != end; ++logit) sum += std::exp(*logit - max);
    loss.push_back(target < 0 ? 0 : std::log(sum) + max - x[target]);
    x = end;
  }
  return loss;
}

}  // namespace plinth::reference
