#include "plinth/hardware/kernels/matmul/reference.h"

namespace plinth::reference {

void Matmul(const MatmulArgs& args) {
  const auto at = [](const TensorView& view, bool transpose, int64_t row, int64_t column) {
    if (transpose) std::swap(row, column);
    return view.ptr<float>()[row * view.strides[0] + column];
  };
  const int64_t K = args.a.dim(args.transpose_a ? 0 : 1);
  for (int64_t m = 0; m < args.c_MN.dim(0); ++m) {
    for (int64_t n = 0; n < args.c_MN.dim(1); ++n) {
      float& c = args.c_MN.ptr<float>()[m * args.c_MN.strides[0] + n];
      double sum = args.accumulate ? c : 0;
      for (int64_t k = 0; k < K; ++k) {
        sum += double{at(args.a, args.transpose_a, m, k)} * at(args.b, args.transpose_b, k, n);
      }
      c = static_cast<float>(sum);
    }
  }
}

}  // namespace plinth::reference
