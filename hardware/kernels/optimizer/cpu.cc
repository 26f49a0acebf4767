#include "plinth/hardware/kernels/optimizer/cpu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/optimizer/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/kernels/vector_loop.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// One pass: every number is read and written once, and the step is bound by memory.
void AdamWRange(const AdamWArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  float* w = args.w.ptr<float>();
  const float* g = args.g.ptr<float>();
  float* m = args.m.ptr<float>();
  float* v = args.v.ptr<float>();
  // 1 - b^t loses all its digits in float once t is small and b near 1.
  const double steps = static_cast<double>(args.step);
  const double b1 = args.beta1, b2 = args.beta2;
  const auto beta1 = hn::Set(d, args.beta1);
  const auto beta2 = hn::Set(d, args.beta2);
  const auto rest1 = hn::Set(d, static_cast<float>(1 - b1));
  const auto rest2 = hn::Set(d, static_cast<float>(1 - b2));
  const auto correct1 = hn::Set(d, static_cast<float>(1 / (1 - std::pow(b1, steps))));
  const auto correct2 = hn::Set(d, static_cast<float>(1 / (1 - std::pow(b2, steps))));
  const auto eps = hn::Set(d, args.eps);
  const auto decay = hn::Set(d, args.decay);
  const auto lr = hn::Set(d, args.lr);
  const auto grad_scale = hn::Set(d, args.grad_scale);
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    const auto grad = hn::Mul(LoadPart(d, g + i, count), grad_scale);
    const auto first = hn::MulAdd(beta1, LoadPart(d, m + i, count), hn::Mul(rest1, grad));
    const auto second =
        hn::MulAdd(beta2, LoadPart(d, v + i, count), hn::Mul(rest2, hn::Mul(grad, grad)));
    const auto weight = LoadPart(d, w + i, count);
    const auto scale = hn::Add(hn::Sqrt(hn::Mul(second, correct2)), eps);
    const auto step = hn::MulAdd(decay, weight, hn::Div(hn::Mul(first, correct1), scale));
    StorePart(first, d, m + i, count);
    StorePart(second, d, v + i, count);
    StorePart(hn::NegMulAdd(lr, step, weight), d, w + i, count);
  });
}

double SquareSumBlock(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> d32;
  return SumVectors(d, n, [=](auto sum, int64_t i, int64_t count) HWY_ATTR {
    const auto value = hn::PromoteTo(d, LoadPart(d32, x + i, count));
    return hn::MulAdd(value, value, sum);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(AdamWRange);
HWY_EXPORT(SquareSumBlock);

constexpr int64_t kAdamWGrain = 1 << 13;
constexpr int64_t kSquareSumBlock = 1 << 14;

}  // namespace

namespace cpu {

void AdamW(const AdamWArgs& args, Threads& threads) {
  threads.ParallelFor(args.w.elements(), kAdamWGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AdamWRange)(args, begin, end);
  });
}

void SquareSum(const SquareSumArgs& args, Threads& threads) {
  const float* x = args.x.ptr<float>();
  const int64_t n = args.x.elements();
  std::vector<double> partial(static_cast<size_t>((n + kSquareSumBlock - 1) / kSquareSumBlock));
  threads.ParallelFor(static_cast<int64_t>(partial.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kSquareSumBlock;
      partial[block] =
          HWY_DYNAMIC_DISPATCH(SquareSumBlock)(x + begin, std::min(kSquareSumBlock, n - begin));
    }
  });
  double sum = 0;
  for (double value : partial) sum += value;
  *args.out.ptr<double>() = sum;
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
