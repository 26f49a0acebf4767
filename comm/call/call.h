// One call of a collective, its arguments checked: what the layers below the communicator pass on.
#ifndef PLINTH_COMM_CALL_CALL_H_
#define PLINTH_COMM_CALL_CALL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/call/group.h"

namespace plinth::comm {

// Where in the caller's source a call was made; a default argument of every operation.
struct CallSite {
  const char* file = "";  // a string literal
  int line = 0;

  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// The last argument of every operation; most callers leave it out or give a limit:
//   comm->AllReduce(buffer, ReduceOp::kSum, absl::Seconds(5));
struct CallOptions {
  // NOLINTNEXTLINE: both are meant to be written as the bare value.
  CallOptions(absl::Duration timeout = absl::ZeroDuration(), CallSite site = CallSite::Here())
      : timeout(timeout), site(site) {}
  CallOptions(CallSite site) : site(site) {}  // NOLINT: so that wrappers pass theirs on

  // The longest to wait for the other ranks; zero is the group's.
  absl::Duration timeout = absl::ZeroDuration();
  CallSite site;
};

// `in` and `out` are what this rank passed; either may be empty where the operation gives this
// rank none (the input of a rank that is not the root of a scatter).
struct CollectiveCall {
  Fingerprint print;  // the sequence is filled in when the call runs
  ConstBuffer in;     // equal to `out` for operations in place
  Buffer out;
  // The v-operations only. reduce_scatter_v and all_gather_v: `send_counts` has the elements of
  // each rank's share, equal on all ranks. all_to_all_v: elements that this rank sends to each,
  // and receives from each. A split by lists has its list in `send_counts`.
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  CallSite site;
  // The group's where the caller gave none. Filled in, like what follows, when the call runs.
  absl::Duration timeout = absl::ZeroDuration();
  const GroupInfo* group = nullptr;
  // While a backend runs the call: what the backend's Describe gave on each rank, by rank.
  std::span<const std::span<const std::byte>> descriptions;
  // all_to_all_v only: elements from rank i to rank j at i * size + j.
  std::span<const int64_t> pair_counts;
};

// Moves the data of calls on whose fingerprints all ranks have agreed: the programs over a
// message transport, shared memory, NCCL. One thread at a time runs calls, in group order.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether it can run such a call. All ranks must say the same, so it may look only at what they
  // agree on: the fingerprint, the share counts of v-operations and the size of the group.
  virtual bool Takes(const CollectiveCall& call) const { return true; }
  // Tells the other ranks what they need to know of this rank's part, such as where its buffers
  // lie. Written to `to` (kMostDescriptionBytes), it travels in the note by which the ranks meet,
  // so Run needs no message of its own for it. Returns the bytes written. Asked of the first
  // backend of a group, and only when the data itself does not travel in the note.
  virtual size_t Describe(const CollectiveCall& call, std::span<std::byte> to) { return 0; }
  // Its buffers are out of the host's reach: nothing of them travels in notes, and the sends and
  // receives, as well as the calls of a group of one, are also its own.
  virtual bool OwnsBuffers() const { return false; }
  // Errors as Communicator's; after one the backend is not used again.
  virtual absl::Status Run(const CollectiveCall& call, absl::Time deadline) = 0;
  // kSend and kReceive calls on which the pairs of ranks have agreed, at once. Only of backends
  // that own the buffers.
  virtual absl::Status RunPairs(std::span<const CollectiveCall> calls, absl::Time deadline) {
    return absl::UnimplementedError("sends and receives");
  }
  // Makes Run return soon, now or later. Thread-safe, does not block.
  virtual void Abort() = 0;
};

inline constexpr size_t kMostDescriptionBytes = 96;

}  // namespace plinth::comm

#endif  // PLINTH_COMM_CALL_CALL_H_
