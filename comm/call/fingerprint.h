// What a rank says it is about to do, compared between all ranks before data moves.
#ifndef PLINTH_COMM_CALL_FINGERPRINT_H_
#define PLINTH_COMM_CALL_FINGERPRINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {

// Values travel between ranks.
enum class OpKind : uint8_t {
  kBarrier = 1,
  kAllReduce = 2,
  kReduceScatter = 3,
  kAllGather = 4,
  kBroadcast = 5,
  kReduce = 6,
  kGather = 7,
  kScatter = 8,
  kAllToAll = 9,
  // The same with a count of its own for each rank, or for each pair of ranks.
  kReduceScatterV = 10,
  kAllGatherV = 11,
  kAllToAllV = 12,
  // Between two ranks.
  kSend = 13,
  kReceive = 14,
  // Forms groups; obtains memory that the ranks share.
  kSplit = 15,
  kAllocate = 16,
};

// "all_reduce", "all_to_all_v"; "operation 99" for a code that this build does not know.
std::string OpName(OpKind op);

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

// "all_reduce #17 (f32 x 1024)", "broadcast #3 of group dp (u8 x 7, root 2)", "barrier #4",
// "send #2 (f32 x 8, to rank 1)". The group is left out when its name is empty.
// Any bytes are fit to print.
std::string ToString(const Fingerprint& print, std::string_view group = {});

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_FINGERPRINT_H_
