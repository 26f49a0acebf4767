#include "plinth/hardware/kernels/linear/reference.h"

#include "plinth/hardware/base/numeric.h"

namespace plinth::reference {

void Linear(const LinearArgs& args) {
  const int64_t I = args.x_TI.dim(1);
  const auto weight = [&](int64_t o, int64_t i) -> double {
    const bool bf16 = args.w.dtype == DType::kBf16;
    const int64_t at = args.packed ? PackedIndex(o, i, I, bf16) : o * args.w.strides[0] + i;
    return bf16 ? Bf16ToF32(args.w.ptr<uint16_t>()[at]) : args.w.ptr<float>()[at];
  };
  for (int64_t t = 0; t < args.x_TI.dim(0); ++t) {
    const float* x = args.x_TI.ptr<float>() + t * args.x_TI.strides[0];
    float* y = args.y_TO.ptr<float>() + t * args.y_TO.strides[0];
    for (int64_t o = 0; o < args.y_TO.dim(1); ++o) {
      double sum = 0;
      for (int64_t i = 0; i < I; ++i) sum += x[i] * weight(o, i);
      if (args.bias_O.data != nullptr) sum += args.bias_O.ptr<float>()[o];
      y[o] = static_cast<float>(sum);
    }
  }
}

}  // namespace plinth::reference
