#include "plinth/comm/transport/nccl/types.h"

#include "plinth/comm/transport/nccl/library.h"

namespace plinth::comm {

std::optional<int> NcclTypeOf(DType dtype, int version) {
  switch (dtype) {
    case DType::kI8:
      return 0;
    case DType::kU8:
      return 1;
    case DType::kI32:
      return 2;
    case DType::kU32:
      return 3;
    case DType::kI64:
      return 4;
    case DType::kU64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBf16:
      return 9;
    case DType::kF8E4M3:
      if (version < kFirstNcclVersionWithF8) return std::nullopt;
      return 10;
    case DType::kF8E5M2:
      if (version < kFirstNcclVersionWithF8) return std::nullopt;
      return 11;
    default:
      return std::nullopt;
  }
}

std::optional<int> NcclOpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProd:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kMin:
      return 3;
    case ReduceOp::kAvg:
      return 4;
    default:
      return std::nullopt;
  }
}

}  // namespace plinth::comm
