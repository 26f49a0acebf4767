// Sizes of a tensor's dimensions, held inline (no allocation).
#ifndef PLINTH_HARDWARE_TENSOR_SHAPE_H_
#define PLINTH_HARDWARE_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

namespace plinth {

// A value type of at most kMaxRank sizes, each >= 0, outermost first. Rank 0 is a scalar.
// CHECKs on a larger rank, a negative size or an index out of range.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // Negative indices count from the innermost dimension: dim(-1) is the last.
  int64_t dim(int i) const;
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Product of the sizes; 1 for a scalar. CHECKs that it fits in int64_t.
  int64_t elements() const;
  // "[2,3]"
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};  // unused entries stay 0 so that == is memberwise
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_TENSOR_SHAPE_H_
