// Parameter: a named weight of a model.
#ifndef PLINTH_MODELS_NN_PARAMETER_H_
#define PLINTH_MODELS_NN_PARAMETER_H_

#include <string>
#include <utility>

#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/tensor/shape.h"

namespace plinth::models {

// How a fresh model fills a parameter; draws are keyed by seed and parameter name.
struct Init {
  enum class Kind { kZeros, kOnes, kNormal } kind = Kind::kZeros;
  double stddev = 0;  // kNormal

  static Init Zeros() { return {Kind::kZeros, 0}; }
  static Init Ones() { return {Kind::kOnes, 0}; }
  static Init Normal(double stddev) { return {Kind::kNormal, stddev}; }
};

// Model code passes parameters to Ops by reference and never looks at `value`: the Ops
// implementation decides where the elements are (packed for serving, gathered from other
// ranks, adapted). A parameter that a model uses in two places (a tied embedding) is one
// object. Thread-compatible; not movable, its address is its identity.
class Parameter {
 public:
  Parameter(std::string name, const Shape& shape, Init init, bool decays)
      : name_(std::move(name)), shape_(shape), init_(init), decays_(decays) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  // "layers.3.attention.q.weight": stable, used in checkpoints.
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  const Init& init() const { return init_; }
  // False for gains and biases, which weight decay leaves alone.
  bool decays() const { return decays_; }

  // Empty until Initialize (models/nn/model.h) or LoadParameters (models/loading) sets it.
  const Tensor& value() const { return value_; }
  void set_value(Tensor value) { value_ = std::move(value); }

 private:
  const std::string name_;
  const Shape shape_;
  const Init init_;
  const bool decays_;
  Tensor value_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_NN_PARAMETER_H_
