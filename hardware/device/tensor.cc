#include "plinth/hardware/device/tensor.h"

#include <atomic>
#include <utility>

#include "plinth/hardware/base/check.h"

namespace plinth {

struct Tensor::Block {
  Block(CachingAllocator* allocator, void* data, int64_t bytes)
      : allocator(allocator), data(data), bytes(bytes) {}
  ~Block() { allocator->Free(data, bytes); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  CachingAllocator* allocator;
  void* data;
  int64_t bytes;
};

namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Tensor::Tensor(std::shared_ptr<const Block> block, const TensorView& view)
    : block_(std::move(block)), view_(view), id_(NextId()) {}

Tensor Tensor::New(CachingAllocator& allocator, DType dtype, const Shape& shape) {
  const int64_t bytes = shape.elements() * DTypeSize(dtype);
  absl::StatusOr<void*> data = allocator.Allocate(bytes);
  CHECK_OK(data);
  return Tensor(std::make_shared<Block>(&allocator, *data, bytes),
                TensorView::Contiguous(*data, dtype, shape));
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  return Tensor(block_, view_.Rows(begin, end));
}

Tensor Tensor::Reshape(const Shape& shape) const { return Tensor(block_, view_.Reshape(shape)); }

}  // namespace plinth
