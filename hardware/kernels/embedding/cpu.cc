#include "plinth/hardware/kernels/embedding/cpu.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hardware/kernels/embedding/cpu.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/kernels/vector_loop.h"

HWY_BEFORE_NAMESPACE();
namespace plinth {
namespace HWY_NAMESPACE {

// All tokens in order, for the columns [begin, end): rows that meet in the table are added
// in the order of t whatever the number of threads.
void AddEmbeddingColumns(const EmbeddingBackwardArgs& args, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const int32_t* ids = args.ids_T.ptr<int32_t>();
  for (int64_t t = 0; t < args.ids_T.elements(); ++t) {
    const float* dy = args.dy_TD.ptr<float>() + t * args.dy_TD.strides[0];
    float* row = args.dtable_VD.ptr<float>() + ids[t] * args.dtable_VD.strides[0];
    ForVectors(d, begin, end, [=](int64_t i, int64_t count) HWY_ATTR {
      StorePart(hn::Add(LoadPart(d, row + i, count), LoadPart(d, dy + i, count)), d, row + i,
                count);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plinth
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plinth {
namespace {

HWY_EXPORT(AddEmbeddingColumns);

// Below this many elements a thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;

void CheckIds(const TensorView& ids_T, int64_t vocabulary) {
  const int32_t* ids = ids_T.ptr<int32_t>();
  for (int64_t t = 0; t < ids_T.elements(); ++t) {
    CHECK(0 <= ids[t] && ids[t] < vocabulary)
        << "ids[" << t << "] is " << ids[t] << " of a table of " << vocabulary;
  }
}

}  // namespace

namespace cpu {

void Embedding(const EmbeddingArgs& args, Threads& threads) {
  CheckIds(args.ids_T, args.table_VD.dim(0));
  const int64_t width = args.table_VD.dim(1);
  if (width == 0) return;
  const int32_t* ids = args.ids_T.ptr<int32_t>();
  threads.ParallelFor(
      args.ids_T.elements(), std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          std::memcpy(args.y_TD.ptr<float>() + t * args.y_TD.strides[0],
                      args.table_VD.ptr<float>() + ids[t] * args.table_VD.strides[0],
                      static_cast<size_t>(width) * sizeof(float));
        }
      });
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args, Threads& threads) {
  CheckIds(args.ids_T, args.dtable_VD.dim(0));
  const int64_t tokens = args.ids_T.elements();
  if (tokens == 0) return;
  const int64_t grain = std::max<int64_t>(16, kGrain / tokens);
  threads.ParallelFor(args.dtable_VD.dim(1), grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddEmbeddingColumns)(args, begin, end);
  });
}

}  // namespace cpu
}  // namespace plinth
#endif  // HWY_ONCE
