#include "plinth/hardware/kernels/elementwise/cpu.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/elementwise/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/kernels/vector_loop.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

void AddRange(const AddArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const float* a = args.a.ptr<float>();
  const float* b = args.b.ptr<float>();
  float* y = args.y.ptr<float>();
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    StorePart(hn::Add(LoadPart(d, a + i, count), LoadPart(d, b + i, count)), d, y + i, count);
  });
}

void ScaleRange(const ScaleArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  float* x = args.x.ptr<float>();
  const auto factor = hn::Set(d, args.factor);
  ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
    StorePart(hn::Mul(LoadPart(d, x + i, count), factor), d, x + i, count);
  });
}

// Row by row, so memory is read in order; the sums of a column range stay in cache.
void ColumnSumRange(const ColumnSumArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  float* y = args.y_O.ptr<float>();
  for (int64_t t = 0; t < args.x_TO.dim(0); ++t) {
    const float* x = args.x_TO.ptr<float>() + t * args.x_TO.strides[0];
    ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
      StorePart(hn::Add(LoadPart(d, y + i, count), LoadPart(d, x + i, count)), d, y + i, count);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;

HWY_EXPORT(AddRange);
HWY_EXPORT(ScaleRange);
HWY_EXPORT(ColumnSumRange);

}  // namespace

namespace cpu {

void Add(const AddArgs& args, Threads& threads) {
  threads.ParallelFor(args.y.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddRange)(args, begin, end);
  });
}

void Scale(const ScaleArgs& args, Threads& threads) {
  threads.ParallelFor(args.x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ScaleRange)(args, begin, end);
  });
}

void ColumnSum(const ColumnSumArgs& args, Threads& threads) {
  const int64_t rows = args.x_TO.dim(0);
  if (rows == 0) return;
  const int64_t grain = std::max<int64_t>(16, kGrain / rows);
  threads.ParallelFor(args.y_O.elements(), grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ColumnSumRange)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
