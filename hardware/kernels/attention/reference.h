// Attention and its gradients by their definitions, all in double: what the fast variants
// are compared with. Contiguous sequences; a test of pages reads the cache into them.
#ifndef PLINTH_HARDWARE_KERNELS_ATTENTION_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_ATTENTION_REFERENCE_H_

#include <cstdint>
#include <vector>

namespace plinth::reference {

// Inputs and results as in AttentionArgs and AttentionBackwardArgs, dense.
struct Attention {
  std::vector<int32_t> q_starts;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 0;
  std::vector<double> q, k, v;

  std::vector<double> out, lse_HT;  // set by Forward

  std::vector<double> dout;
  std::vector<double> dq, dk, dv;  // set by Backward, which runs Forward

  void Forward();
  void Backward();

 private:
  // Of the keys from the sequence's first row to the query's own; sets its lse.
  std::vector<double> Probabilities(int64_t first, int64_t row, int64_t head);
};

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_ATTENTION_REFERENCE_H_
