#include "plinth/hardware/kernels/rows/cpu.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/rows/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/numeric.h"
#include "plinth/hardware/kernels/vector_loop.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

void AddRow(const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  ForVectors(d, 0, n, [=](int64_t i, int64_t count) HWY_ATTR {
    StorePart(hn::Add(LoadPart(d, y + i, count), LoadPart(d, x + i, count)), d, y + i, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(AddRow);

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;

template <typename T>
T* Row(const TensorView& view, int64_t row) {
  return view.ptr<T>() + row * view.strides[0];
}

// Calls body(r, index[r]) for every r in parallel, each index in [0, limit).
template <typename Body>
void ForIndexedRows(const TensorView& index, int64_t limit, int64_t width, Threads& threads,
                    Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
  threads.ParallelFor(index.elements(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = index.ptr<int32_t>()[r];
      CHECK(0 <= row && row < limit) << "index[" << r << "] is " << row << " of " << limit;
      body(r, row);
    }
  });
}

}  // namespace

namespace cpu {

void GatherRows(const GatherRowsArgs& args, Threads& threads) {
  const int64_t width = args.x.dim(1);
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  ForIndexedRows(args.index, args.x.dim(0), width, threads, [&](int64_t r, int64_t row) {
    if (bytes > 0) std::memcpy(Row<float>(args.y, r), Row<float>(args.x, row), bytes);
  });
}

void ScatterRows(const ScatterRowsArgs& args, Threads& threads) {
  const int64_t width = args.x.dim(1);
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  ForIndexedRows(args.index, args.y.dim(0), width, threads, [&](int64_t r, int64_t row) {
    if (args.y.dtype == DType::kBf16) {
      const float* from = Row<float>(args.x, r);
      std::transform(from, from + width, Row<uint16_t>(args.y, row), F32ToBf16);
    } else if (bytes > 0) {
      std::memcpy(Row<float>(args.y, row), Row<float>(args.x, r), bytes);
    }
  });
}

void AddRows(const AddRowsArgs& args, Threads& threads) {
  const int64_t width = args.x.dim(1);
  ForIndexedRows(args.index, args.y.dim(0), width, threads, [&](int64_t r, int64_t row) {
    HWY_DYNAMIC_DISPATCH(AddRow)(Row<float>(args.x, r), Row<float>(args.y, row), width);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
