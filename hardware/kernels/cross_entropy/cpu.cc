#include "plinth/hardware/kernels/cross_entropy/cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/cross_entropy/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/vector_loop.h"
#include "plinth/hardware/kernels/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

HWY_INLINE float RowMax(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto step = [=](auto most, int64_t i, int64_t count) HWY_ATTR {
    auto value = LoadPart(d, x + i, count);
    if (count < static_cast<int64_t>(hn::Lanes(d))) {
      value = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), value, lowest);
    }
    return hn::Max(most, value);
  };
  const auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
  return hn::GetLane(hn::MaxOfLanes(d, ReduceVectors(d, n, lowest, step, max)));
}

// sum_v exp(x[v] - max); with `keep` each exponential replaces its logit.
template <bool keep>
HWY_INLINE float SumExp(float* x, int64_t n, float max) {
  const hn::ScalableTag<float> d;
  const auto shift = hn::Set(d, max);
  return SumVectors(d, n, [=](auto sum, int64_t i, int64_t count) HWY_ATTR {
    const auto e = KeepPart(d, Exp(d, hn::Sub(LoadPart(d, x + i, count), shift)), count);
    if (keep) StorePart(e, d, x + i, count);
    return hn::Add(sum, e);
  });
}

HWY_INLINE void ScaleRow(float* x, int64_t n, float by) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, by);
  ForVectors(d, 0, n, [=](int64_t i, int64_t count) HWY_ATTR {
    StorePart(hn::Mul(LoadPart(d, x + i, count), factor), d, x + i, count);
  });
}

void CrossEntropyRows(const CrossEntropyArgs& args, int64_t begin, int64_t end) {
  const int64_t classes = args.logits_TV.dim(1);
  for (int64_t t = begin; t < end; ++t) {
    float* x = args.logits_TV.ptr<float>() + t * args.logits_TV.strides[0];
    const int64_t target = args.targets_T.ptr<int32_t>()[t];
    float& loss = args.loss_T.ptr<float>()[t];
    if (target == -1) {
      loss = 0;
      if (args.gradient) std::fill(x, x + classes, 0.0f);
      continue;
    }
    CHECK(0 <= target && target < classes)
        << "targets[" << t << "] is " << target << " of " << classes << " classes";
    const float max = RowMax(x, classes);
    const float at_target = x[target];
    const float sum =
        args.gradient ? SumExp<true>(x, classes, max) : SumExp<false>(x, classes, max);
    loss = std::log(sum) + (max - at_target);
    if (!args.gradient) continue;
    ScaleRow(x, classes, args.weight / sum);
    x[target] -= args.weight;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(CrossEntropyRows);

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 12;

}  // namespace

namespace cpu {

void CrossEntropy(const CrossEntropyArgs& args, Threads& threads) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, args.logits_TV.dim(1)));
  threads.ParallelFor(args.logits_TV.dim(0), grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
