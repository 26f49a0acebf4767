#include "plinth/hardware/kernels/norm/cpu.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/norm/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/kernels/vector_loop.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

HWY_INLINE float* NormRow(const TensorView& view, int64_t row) {
  return view.ptr<float>() + row * view.strides[0];
}

void RmsNormRows(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const int64_t width = args.x_TD.dim(1);
  const float* gain = args.gain_D.ptr<float>();
  for (int64_t t = begin; t < end; ++t) {
    const float* x = NormRow(args.x_TD, t);
    float* y = NormRow(args.y_TD, t);
    const float squares = SumVectors(d, width, [=](auto sum, int64_t i, int64_t count) HWY_ATTR {
      const auto value = LoadPart(d, x + i, count);
      return hn::MulAdd(value, value, sum);
    });
    const float rstd = 1 / std::sqrt(squares / static_cast<float>(width) + args.eps);
    if (args.rstd_T.data != nullptr) args.rstd_T.ptr<float>()[t] = rstd;
    const auto scale = hn::Set(d, rstd);
    ForVectors(d, 0, width, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto unit = hn::Mul(LoadPart(d, x + i, count), scale);
      StorePart(hn::Mul(unit, LoadPart(d, gain + i, count)), d, y + i, count);
    });
  }
}

// With u = x * rstd:  dx = rstd * (dy * gain - u * mean(dy * gain * u)).
void RmsNormBackwardRows(const RmsNormBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const int64_t width = args.x_TD.dim(1);
  const float* gain = args.gain_D.ptr<float>();
  for (int64_t t = begin; t < end; ++t) {
    const float* x = NormRow(args.x_TD, t);
    const float* dy = NormRow(args.dy_TD, t);
    float* dx = NormRow(args.dx_TD, t);
    const float rstd = args.rstd_T.ptr<float>()[t];
    const float dot = SumVectors(d, width, [=](auto sum, int64_t i, int64_t count) HWY_ATTR {
      const auto du = hn::Mul(LoadPart(d, dy + i, count), LoadPart(d, gain + i, count));
      return hn::MulAdd(du, LoadPart(d, x + i, count), sum);
    });
    const auto scale = hn::Set(d, rstd);
    const auto along = hn::Set(d, dot * rstd / static_cast<float>(width) * rstd);
    ForVectors(d, 0, width, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto du = hn::Mul(LoadPart(d, dy + i, count), LoadPart(d, gain + i, count));
      const auto centred = hn::NegMulAdd(along, LoadPart(d, x + i, count), du);
      StorePart(hn::Mul(centred, scale), d, dx + i, count);
    });
  }
}

void RmsNormGainColumns(const RmsNormBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  float* dgain = args.dgain_D.ptr<float>();
  for (int64_t t = 0; t < args.x_TD.dim(0); ++t) {
    const float* x = NormRow(args.x_TD, t);
    const float* dy = NormRow(args.dy_TD, t);
    const auto rstd = hn::Set(d, args.rstd_T.ptr<float>()[t]);
    ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto unit = hn::Mul(LoadPart(d, x + i, count), rstd);
      const auto sum = hn::MulAdd(LoadPart(d, dy + i, count), unit, LoadPart(d, dgain + i, count));
      StorePart(sum, d, dgain + i, count);
    });
  }
}

void LayerNormRows(const LayerNormArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const int64_t width = args.x_TD.dim(1);
  const float* gain = args.gain_D.ptr<float>();
  const float* bias = args.bias_D.ptr<float>();
  for (int64_t t = begin; t < end; ++t) {
    const float* x = NormRow(args.x_TD, t);
    float* y = NormRow(args.y_TD, t);
    const float sum = SumVectors(d, width, [=](auto acc, int64_t i, int64_t count) HWY_ATTR {
      return hn::Add(acc, LoadPart(d, x + i, count));
    });
    const float mean = sum / static_cast<float>(width);
    const auto centre = hn::Set(d, mean);
    // A second pass over a row that is in cache by now: mean(x^2) - mean^2 would cancel.
    const float squares = SumVectors(d, width, [=](auto acc, int64_t i, int64_t count) HWY_ATTR {
      const auto off = KeepPart(d, hn::Sub(LoadPart(d, x + i, count), centre), count);
      return hn::MulAdd(off, off, acc);
    });
    const float rstd = 1 / std::sqrt(squares / static_cast<float>(width) + args.eps);
    if (args.mean_T.data != nullptr) args.mean_T.ptr<float>()[t] = mean;
    if (args.rstd_T.data != nullptr) args.rstd_T.ptr<float>()[t] = rstd;
    const auto scale = hn::Set(d, rstd);
    ForVectors(d, 0, width, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto unit = hn::Mul(hn::Sub(LoadPart(d, x + i, count), centre), scale);
      const auto value =
          hn::MulAdd(unit, LoadPart(d, gain + i, count), LoadPart(d, bias + i, count));
      StorePart(value, d, y + i, count);
    });
  }
}

// With u = (x - mean) * rstd and du = dy * gain:
//   dx = rstd * (du - mean(du) - u * mean(du * u)).
void LayerNormBackwardRows(const LayerNormBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const int64_t width = args.x_TD.dim(1);
  const float per_element = 1 / static_cast<float>(width);
  const float* gain = args.gain_D.ptr<float>();
  for (int64_t t = begin; t < end; ++t) {
    const float* x = NormRow(args.x_TD, t);
    const float* dy = NormRow(args.dy_TD, t);
    float* dx = NormRow(args.dx_TD, t);
    const auto mean = hn::Set(d, args.mean_T.ptr<float>()[t]);
    const auto rstd = hn::Set(d, args.rstd_T.ptr<float>()[t]);
    const float sum = SumVectors(d, width, [=](auto acc, int64_t i, int64_t count) HWY_ATTR {
      return hn::MulAdd(LoadPart(d, dy + i, count), LoadPart(d, gain + i, count), acc);
    });
    const float dot = SumVectors(d, width, [=](auto acc, int64_t i, int64_t count) HWY_ATTR {
      // Zero after `count`, since dy is.
      const auto du = hn::Mul(LoadPart(d, dy + i, count), LoadPart(d, gain + i, count));
      return hn::MulAdd(du, hn::Mul(hn::Sub(LoadPart(d, x + i, count), mean), rstd), acc);
    });
    const auto level = hn::Set(d, sum * per_element);
    const auto along = hn::Set(d, dot * per_element);
    ForVectors(d, 0, width, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto unit = hn::Mul(hn::Sub(LoadPart(d, x + i, count), mean), rstd);
      const auto du = hn::Mul(LoadPart(d, dy + i, count), LoadPart(d, gain + i, count));
      const auto centred = hn::NegMulAdd(along, unit, hn::Sub(du, level));
      StorePart(hn::Mul(centred, rstd), d, dx + i, count);
    });
  }
}

void LayerNormGainColumns(const LayerNormBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  float* dgain = args.dgain_D.ptr<float>();
  float* dbias = args.dbias_D.ptr<float>();
  for (int64_t t = 0; t < args.x_TD.dim(0); ++t) {
    const float* x = NormRow(args.x_TD, t);
    const float* dy = NormRow(args.dy_TD, t);
    const auto mean = hn::Set(d, args.mean_T.ptr<float>()[t]);
    const auto rstd = hn::Set(d, args.rstd_T.ptr<float>()[t]);
    ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
      const auto upstream = LoadPart(d, dy + i, count);
      const auto unit = hn::Mul(hn::Sub(LoadPart(d, x + i, count), mean), rstd);
      StorePart(hn::MulAdd(upstream, unit, LoadPart(d, dgain + i, count)), d, dgain + i, count);
      StorePart(hn::Add(upstream, LoadPart(d, dbias + i, count)), d, dbias + i, count);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormBackwardRows);
HWY_EXPORT(RmsNormGainColumns);
HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);
HWY_EXPORT(LayerNormGainColumns);

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 13;

int64_t RowGrain(const TensorView& x_TD) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, x_TD.dim(1)));
}
// Whole cache lines, so that threads do not share one.
int64_t ColumnGrain(const TensorView& x_TD) {
  return std::max<int64_t>(16, kGrain / std::max<int64_t>(1, x_TD.dim(0)));
}

}  // namespace

namespace cpu {

void RmsNorm(const RmsNormArgs& args, Threads& threads) {
  threads.ParallelFor(args.x_TD.dim(0), RowGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormRows)(args, begin, end);
  });
}

void RmsNormBackward(const RmsNormBackwardArgs& args, Threads& threads) {
  // The gain's gradient first: dx may lie over dy or x.
  threads.ParallelFor(args.x_TD.dim(1), ColumnGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormGainColumns)(args, begin, end);
  });
  threads.ParallelFor(args.x_TD.dim(0), RowGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormBackwardRows)(args, begin, end);
  });
}

void LayerNorm(const LayerNormArgs& args, Threads& threads) {
  threads.ParallelFor(args.x_TD.dim(0), RowGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRows)(args, begin, end);
  });
}

void LayerNormBackward(const LayerNormBackwardArgs& args, Threads& threads) {
  // The gain's gradient first: dx may lie over dy or x.
  threads.ParallelFor(args.x_TD.dim(1), ColumnGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormGainColumns)(args, begin, end);
  });
  threads.ParallelFor(args.x_TD.dim(0), RowGrain(args.x_TD), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
