#include "plinth/hardware/kernels/rope/reference.h"

#include <complex>

namespace plinth::reference {

// A pair is a complex number, and turning it a product with one of length 1.
void Rope(const RopeArgs& args) {
  const int64_t half = args.head_dim / 2;
  for (int64_t t = 0; t < args.x.dim(0); ++t) {
    const double position = args.positions.ptr<int32_t>()[t];
    for (int64_t h = 0; h < args.heads; ++h) {
      const float* x = args.x.ptr<float>() + t * args.x.strides[0] + h * args.head_dim;
      float* y = args.y.ptr<float>() + t * args.y.strides[0] + h * args.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const double angle = position * args.inv_freq.ptr<float>()[i];
        const auto turned = std::complex<double>(x[i], x[i + half]) *
                            std::polar(1.0, args.inverse ? -angle : angle);
        y[i] = static_cast<float>(turned.real());
        y[i + half] = static_cast<float>(turned.imag());
      }
    }
  }
}

}  // namespace plinth::reference
