#include "plinth/hardware/tensor/shape.h"

#include "plinth/hardware/base/check.h"

namespace plinth {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  CHECK_LE(dims.size(), static_cast<size_t>(kMaxRank));
  for (int i = 0; i < rank_; ++i) {
    CHECK_GE(dims[i], 0) << "dimension " << i;
    dims_[i] = dims[i];
  }
}

int64_t Shape::dim(int i) const {
  const int index = i < 0 ? i + rank_ : i;
  CHECK(index >= 0 && index < rank_) << "dim(" << i << ") of " << ToString();
  return dims_[index];
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) {
    CHECK(!__builtin_mul_overflow(product, dims_[i], &product)) << ToString();
  }
  return product;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i > 0 ? "," : "") + std::to_string(dims_[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

}  // namespace plinth
