// Element types and reductions in NCCL's numbering.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_TYPES_H_
#define PLINTH_COMM_TRANSPORT_NCCL_TYPES_H_

#include <optional>

#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// What is moved unchanged goes as bytes, whatever its dtype.
inline constexpr int kNcclByte = 1;

// Nothing when NCCL of this version does not reduce such elements.
std::optional<int> NcclTypeOf(DType dtype, int version);
// Nothing for kNone.
std::optional<int> NcclOpOf(ReduceOp op);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_NCCL_TYPES_H_
