#include "plinth/storage/checkpoint/box.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::storage {
namespace {

// Nothing when they share no element.
std::optional<Box> Shared(const Box& a, const Box& b) {
  Box shared;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    const int64_t begin = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
    if (begin >= end) return std::nullopt;
    shared.offset.push_back(begin);
    shared.shape.push_back(end - begin);
  }
  return shared;
}

// Position of the element at `index` (of the whole tensor) within the bytes of `box`.
int64_t Position(const Box& box, std::span<const int64_t> index) {
  int64_t position = 0;
  for (size_t d = 0; d < box.shape.size(); ++d) {
    position = position * box.shape[d] + (index[d] - box.offset[d]);
  }
  return position;
}

}  // namespace

Box Box::Whole(std::span<const int64_t> shape) {
  return {std::vector<int64_t>(shape.size(), 0), {shape.begin(), shape.end()}};
}

std::string Box::ToString() const {
  std::vector<std::string> ranges;
  for (size_t d = 0; d < std::min(offset.size(), shape.size()); ++d) {
    ranges.push_back(absl::StrCat(offset[d], "+", shape[d]));
  }
  return "[" + absl::StrJoin(ranges, ", ") + "]";
}

absl::Status CheckWithin(const Box& box, std::span<const int64_t> tensor_shape) {
  const auto bad = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "slice ", box.ToString(), " ", why, " of shape [", absl::StrJoin(tensor_shape, ", "), "]"));
  };
  if (box.offset.size() != tensor_shape.size() || box.shape.size() != tensor_shape.size()) {
    return bad("has another rank than a tensor");
  }
  for (size_t d = 0; d < tensor_shape.size(); ++d) {
    if (box.offset[d] < 0 || box.shape[d] < 0 || box.offset[d] > tensor_shape[d] ||
        box.shape[d] > tensor_shape[d] - box.offset[d]) {
      return bad("is not within a tensor");
    }
  }
  return absl::OkStatus();
}

int64_t Elements(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) CHECK(!__builtin_mul_overflow(elements, size, &elements));
  return elements;
}

absl::Status CheckTiling(std::span<const Box> boxes, std::span<const int64_t> tensor_shape) {
  int64_t covered = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    RETURN_IF_ERROR(CheckWithin(boxes[i], tensor_shape));
    covered += Elements(boxes[i].shape);
    for (size_t j = 0; j < i; ++j) {
      if (Shared(boxes[j], boxes[i]).has_value()) {
        return absl::InvalidArgumentError("slices " + boxes[j].ToString() + " and " +
                                          boxes[i].ToString() + " overlap");
      }
    }
  }
  // Without overlap, equal counts mean that nothing is missing.
  const int64_t elements = Elements(tensor_shape);
  if (covered != elements) {
    return absl::InvalidArgumentError(absl::StrCat("slices cover ", covered, " of ", elements,
                                                   " elements of shape [",
                                                   absl::StrJoin(tensor_shape, ", "), "]"));
  }
  return absl::OkStatus();
}

int64_t CopyShared(const Box& from, std::span<const std::byte> from_bytes, const Box& to,
                   std::span<std::byte> to_bytes, int64_t element_bytes) {
  const std::optional<Box> shared = Shared(from, to);
  if (!shared.has_value()) return 0;
  CHECK_EQ(static_cast<int64_t>(from_bytes.size()), Elements(from.shape) * element_bytes);
  CHECK_EQ(static_cast<int64_t>(to_bytes.size()), Elements(to.shape) * element_bytes);
  // Innermost dimensions that both boxes hold whole are one run of bytes, and so is the
  // first dimension outside of them.
  int outer = static_cast<int>(shared->shape.size());
  int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= shared->shape[outer];
    if (shared->shape[outer] != from.shape[outer] || shared->shape[outer] != to.shape[outer]) break;
  }
  const int64_t elements = Elements(shared->shape);
  std::vector<int64_t> index = shared->offset;
  for (int64_t done = 0; done < elements; done += run) {
    std::memcpy(to_bytes.data() + Position(to, index) * element_bytes,
                from_bytes.data() + Position(from, index) * element_bytes, run * element_bytes);
    for (int d = outer - 1; d >= 0; --d) {  // the next index of the outer dimensions
      if (++index[d] < shared->offset[d] + shared->shape[d]) break;
      index[d] = shared->offset[d];
    }
  }
  return elements;
}

}  // namespace plinth::storage
