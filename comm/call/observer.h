// Sees every call of the groups of a process: what a flight recorder hangs on.
#ifndef PLINTH_COMM_CALL_OBSERVER_H_
#define PLINTH_COMM_CALL_OBSERVER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"

namespace plinth::comm {

// One observer may serve several groups. The life of a call:
//   Queued     on the thread that makes the call, in any order between threads
//   Started    its turn has come; `sequence` is its number in the group (between two ranks: of
//              their sends and receives). This rank now waits for the others
//   Arrived    every rank it needs is there and has called the same; data moves from here on
//   Finished   with its status. A call that fails may skip Started and Arrived
// Threads  called from all of them at once. A group's Started, Arrived and Finished never overlap.
// Cost     on the path of an 8-byte all-reduce: must neither block nor allocate.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  // `group` stays until the GroupEnded that carries the number returned here.
  virtual uint32_t GroupFormed(const GroupInfo& group) = 0;
  // This rank makes no more calls and has begun to tear the group down; those made still run.
  virtual void GroupLeaving(uint32_t group) {}
  virtual void GroupEnded(uint32_t group) = 0;

  // What it returns names the call to the methods below.
  virtual uint64_t Queued(uint32_t group, const CollectiveCall& call) = 0;
  virtual void Started(uint64_t call, uint64_t sequence) = 0;
  virtual void Arrived(uint64_t call) = 0;
  // Bytes that this rank's transport has moved for it, this rank's notes included.
  virtual void Finished(uint64_t call, const absl::Status& status, int64_t bytes_sent,
                        int64_t bytes_received) = 0;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_OBSERVER_H_
