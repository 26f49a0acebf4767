#include "plinth/hardware/tensor/tensor_view.h"

#include <vector>

#include "gtest/gtest.h"

namespace plinth {
namespace {

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{2, 0, 3}).elements(), 0);
  EXPECT_EQ((Shape{2, 3}).ToString(), "[2,3]");
  EXPECT_EQ((Shape{2, 3}).dim(-1), 3);
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_DEATH((Shape{1, -1}), "dimension 1");
  EXPECT_DEATH((Shape{1LL << 40, 1LL << 40}).elements(), "check failed");
}

TEST(TensorView, RowsKeepStrides) {
  std::vector<float> data(24);
  const TensorView view = TensorView::Contiguous(data.data(), DType::kF32, {4, 3, 2});
  const TensorView rows = view.Rows(1, 3);
  EXPECT_EQ(rows.ptr<float>(), data.data() + 6);
  EXPECT_EQ(rows.shape, (Shape{2, 3, 2}));
  EXPECT_TRUE(rows.contiguous());
  EXPECT_EQ(rows.Reshape({12}).bytes(), 48);
}

TEST(TensorView, StridedIsNotContiguous) {
  std::vector<float> data(24);
  TensorView view = TensorView::Contiguous(data.data(), DType::kF32, {4, 3});
  view.strides[0] = 6;
  EXPECT_FALSE(view.contiguous());
  EXPECT_DEATH(view.Reshape({12}), "strided");
}

TEST(DType, NamesRoundTrip) {
  for (int code = 1; code <= 15; ++code) {
    const DType dtype = static_cast<DType>(code);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
    EXPECT_GE(DTypeSize(dtype), 1);
  }
  EXPECT_EQ(ParseDType("f12"), std::nullopt);
}

}  // namespace
}  // namespace plinth
