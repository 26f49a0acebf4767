// Random programs of calls that are legal: every rank makes the same ones, so nothing may alarm.
#ifndef PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_
#define PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm::testing {

// One call of a program. Everything that ranks must agree on.
struct LegalCall {
  OpKind op = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements of a rank's share, as in the fingerprint
  int root = 0;
  bool async = false;
};

// Call number `index` of program `seed` in a group of `size` ranks; the same on every rank.
LegalCall CallOf(uint64_t seed, uint64_t index, int size);

// Makes the call with inputs that depend on seed, index and rank, and compares every element of
// the result with what is expected. kInternal: the first wrong element. Otherwise the status of
// the call.
absl::Status MakeCall(Communicator& comm, const LegalCall& call, uint64_t seed, uint64_t index,
                      absl::Duration timeout);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_
