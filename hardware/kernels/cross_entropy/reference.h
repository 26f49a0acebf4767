// cross_entropy.h in double.
#ifndef PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_REFERENCE_H_

#include <cstdint>
#include <vector>

namespace plinth::reference {

// The loss of each row; a row has logits_TV.size() / targets_T.size() classes.
std::vector<double> CrossEntropy(const std::vector<double>& logits_TV,
                                 const std::vector<int32_t>& targets_T);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_CROSS_ENTROPY_REFERENCE_H_
