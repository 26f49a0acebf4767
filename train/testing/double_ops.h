// DoubleOps: the operations of a model in double precision, plainly. The truth that gradients
// are compared with.
#ifndef PLINTH_TRAIN_TESTING_DOUBLE_OPS_H_
#define PLINTH_TRAIN_TESTING_DOUBLE_OPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/models/nn/ops.h"

namespace plinth::train::testing {

// Tensors are f64 on a host device of its own. Parameter values are those of `values`, which
// a test may change between calls; their Parameter::value() is not used.
class DoubleOps : public models::Ops {
 public:
  using Values = std::map<const models::Parameter*, std::vector<double>>;

  explicit DoubleOps(const Values* values);

  Tensor Embedding(const models::Parameter& table_VD, std::span<const int32_t> ids_T) override;
  Tensor Linear(const Tensor& x_TI, const models::Parameter& w_OI,
                const models::Parameter* bias_O) override;
  Tensor LayerNorm(const Tensor& x_TD, const models::Parameter& gain_D,
                   const models::Parameter& bias_D, float eps) override;
  Tensor RmsNorm(const Tensor& x_TD, const models::Parameter& gain_D, float eps) override;
  Tensor Add(const Tensor& a, const Tensor& b) override;
  Tensor Gelu(const Tensor& x) override;
  Tensor SwiGlu(const Tensor& gate, const Tensor& up) override;
  Tensor Rope(const Tensor& x, const models::RopeSpec& spec,
              const models::TokenBatch& batch) override;
  Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                   const models::AttentionSpec& spec, const models::TokenBatch& batch) override;
  Tensor GatherRows(const Tensor& x_TD, std::span<const int32_t> rows_R) override;

 private:
  Tensor New(int64_t rows, int64_t columns);
  const std::vector<double>& Value(const models::Parameter& parameter) const;
  Tensor Normalize(const Tensor& x, const models::Parameter& gain, const models::Parameter* bias,
                   float eps);

  const Values* const values_;
  std::unique_ptr<Device> device_;
  CachingAllocator allocator_;
};

// Sum over rows of -log softmax(hidden . head^T)[target]; rows with target -1 count 0.
double HeadLoss(const Tensor& hidden_TD, const std::vector<double>& head_VD,
                std::span<const int32_t> targets_T);

// d loss / d value for every element of every parameter by central differences; `values` is
// restored. With step 1e-4 the error is about 1e-8 of the loss's third derivative.
DoubleOps::Values CentralDifferences(DoubleOps::Values& values,
                                     const std::function<double()>& loss);

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_DOUBLE_OPS_H_
