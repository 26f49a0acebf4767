#include "plinth/hardware/kernels/matmul/cpu.h"

#include <dnnl.h>

#include <algorithm>
#include <cstring>

#include "plinth/hardware/base/check.h"

// oneDNN runs on libgomp whichever compiler built us; Clang has no omp.h for it.
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads(void);

namespace plinth::cpu {
namespace {

// The size of the OpenMP teams that the calling thread starts, for one scope.
class ScopedTeamSize {
 public:
  explicit ScopedTeamSize(int count) : before_(omp_get_max_threads()) {
    if (count != before_) omp_set_num_threads(count);
  }
  ~ScopedTeamSize() { omp_set_num_threads(before_); }
  ScopedTeamSize(const ScopedTeamSize&) = delete;
  ScopedTeamSize& operator=(const ScopedTeamSize&) = delete;

 private:
  const int before_;
};

// A matrix of one row may carry any row stride; BLAS wants at least its width.
dnnl_dim_t LeadingDimension(const TensorView& view) {
  return std::max<dnnl_dim_t>({1, view.dim(1), view.dim(0) > 1 ? view.strides[0] : 0});
}

void FillZero(const TensorView& c) {
  for (int64_t row = 0; row < c.dim(0); ++row) {
    std::memset(c.ptr<float>() + row * c.strides[0], 0, c.dim(1) * sizeof(float));
  }
}

}  // namespace

void Matmul(const MatmulArgs& args, Threads& threads) {
  const dnnl_dim_t m = args.c_MN.dim(0), n = args.c_MN.dim(1);
  const dnnl_dim_t k = args.a.dim(args.transpose_a ? 0 : 1);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (!args.accumulate) FillZero(args.c_MN);
    return;
  }
  const ScopedTeamSize team(threads.count());
  const dnnl_status_t status = dnnl_sgemm(
      args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', m, n, k, 1.0f,
      args.a.ptr<float>(), LeadingDimension(args.a), args.b.ptr<float>(), LeadingDimension(args.b),
      args.accumulate ? 1.0f : 0.0f, args.c_MN.ptr<float>(), LeadingDimension(args.c_MN));
  CHECK_EQ(status, dnnl_success) << " from dnnl_sgemm of M " << m << ", N " << n << ", K " << k;
}

}  // namespace plinth::cpu
