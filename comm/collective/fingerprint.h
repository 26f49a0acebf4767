// What a rank says it is about to do, compared between all ranks before data moves.
#ifndef PLINTH_COMM_COLLECTIVE_FINGERPRINT_H_
#define PLINTH_COMM_COLLECTIVE_FINGERPRINT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plinth/comm/collective/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Values travel between ranks.
enum class OpKind : uint8_t {
  kBarrier = 1,
  kAllReduce = 2,
  kReduceScatter = 3,
  kAllGather = 4,
  kBroadcast = 5,
};

// Plain bytes on the wire: no padding, so equal fingerprints are equal bytes.
struct Fingerprint {
  uint64_t sequence = 0;  // of the call within its group, from 1
  int64_t count = 0;      // elements per rank: of the larger buffer's share
  int32_t root = -1;      // -1 when the operation has none
  OpKind op = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kNone;
  DType dtype = DType::kF32;
  uint8_t unused = 0;

  bool operator==(const Fingerprint&) const = default;
};
static_assert(sizeof(Fingerprint) == 24);

// "all_reduce #17 (f32 x 1024)", "broadcast #3 (u8 x 7, root 2)", "barrier #4".
// Any bytes are fit to print.
std::string ToString(const Fingerprint& print);

// One line that names each rank that differs from most (on a draw: from the lowest ranks) and
// both fingerprints, the same text on every rank; nothing when all are equal. By rank.
std::optional<std::string> DescribeMismatch(std::span<const Fingerprint> prints);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_COLLECTIVE_FINGERPRINT_H_
