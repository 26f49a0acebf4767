// Random programs of calls that are legal: every rank makes the same ones, so nothing may alarm.
#ifndef PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_
#define PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm::testing {

// One call of a program. Everything that ranks must agree on.
struct LegalCall {
  // kSend: between two ranks; every rank sends and receives.
  OpKind op = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements of a rank's share, as in the fingerprint
  int root = 0;
  // kSend: how far it is to the rank that a rank sends to, all in one Exchange; 0: ranks 0 and 1,
  // 2 and 3, ... send to and fro.
  int shift = 0;
  bool async = false;
};

// Call number `index` of program `seed` in a group of `size` ranks; the same on every rank. A
// collective, so that `index` is also its number in the group.
LegalCall CallOf(uint64_t seed, uint64_t index, int size);
// The same, with sends and receives among the collectives.
LegalCall CallOrMessageOf(uint64_t seed, uint64_t index, int size);

// A call that was made and whose outcome nobody has looked at yet.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Waits for its end. Status as MakeCall's. Once, before it is destroyed: it has the buffers.
  virtual absl::Status Finish() = 0;
};

// Returns at once from an asynchronous call; otherwise Finish tells what came of it.
std::unique_ptr<PendingCall> StartCall(Communicator& comm, const LegalCall& call, uint64_t seed,
                                       uint64_t index, absl::Duration timeout);

// Makes the call with inputs that depend on seed, index and rank, and compares every element of
// the result with what is expected. kInternal: the first wrong element. Otherwise the status of
// the call.
absl::Status MakeCall(Communicator& comm, const LegalCall& call, uint64_t seed, uint64_t index,
                      absl::Duration timeout);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_LEGAL_PROGRAMS_H_
