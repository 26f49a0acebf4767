// Runs the calls of a group, one after the other.
//
//   1. The ranks meet: each posts a note with the fingerprint of its call, where it was made, the
//      lists of v-operations and, for small calls, the data. All see all notes, so all come to
//      the same verdict on a mismatch without another word.
//   2. Calls whose data travelled in the notes end there, reduced in rank order.
//   3. The first backend that takes the call moves the data.
//   4. What breaks becomes one line; its finder aborts the group, so that the other ranks repeat
//      the line instead of blaming the rank that gave up first.
#ifndef PLINTH_COMM_ENGINE_ENGINE_H_
#define PLINTH_COMM_ENGINE_ENGINE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/call/observer.h"
#include "plinth/comm/engine/note.h"
#include "plinth/comm/engine/pairs.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"

namespace plinth::comm {

struct EngineOptions {
  absl::Duration timeout;
  int64_t note_payload_bytes = kMostPayloadBytes;  // see GroupOptions
  std::vector<std::unique_ptr<Backend>> backends;  // in order of preference
  std::shared_ptr<CallObserver> observer;          // may be null
};

// Used by one thread at a time, except Observe and Abort.
class CollectiveEngine {
 public:
  // `group` has the ranks of the transport.
  CollectiveEngine(std::unique_ptr<Transport> transport, GroupInfo group, EngineOptions options);
  ~CollectiveEngine();

  const GroupInfo& group() const { return group_; }
  Transport& transport() { return *transport_; }
  const Transport& transport() const { return *transport_; }
  absl::Duration timeout() const { return timeout_; }

  // The communicator is being destroyed; calls that were made before still come.
  void Leaving();
  // Tells the observer of a call, whose number among the observed it returns. Thread-safe.
  uint64_t Observe(const CollectiveCall& call);

  // kDeadlineExceeded, kUnavailable: names the ranks that did not come or are gone, and the call.
  // kFailedPrecondition: the ranks called different things. kAborted: what another rank found.
  // After an error the group is unusable and every later call returns the first error.
  // `observed` is what Observe returned.
  absl::Status Run(CollectiveCall& call, uint64_t observed);
  // The same between pairs of ranks. Ranks that have no part in it do not call it.
  absl::Status RunPairs(PairCalls& calls);

  // Memory that all ranks address where the transport has it; `call` is a kAllocate.
  absl::StatusOr<SharedMemory> Allocate(CollectiveCall& call, int64_t bytes, uint64_t observed);

  // What Abort of the communicator does. Thread-safe.
  void Abort(std::string_view reason);

 private:
  absl::Status RunOnce(CollectiveCall& call, uint64_t observed);
  absl::Status RunAlone(CollectiveCall& call);
  absl::Status RunTogether(CollectiveCall& call, uint64_t observed);

  // Posts this rank's note and compares those of all.
  absl::Status Meet(CollectiveCall& call, absl::Time deadline);
  std::span<const std::byte> WriteNote(const CollectiveCall& call);
  // Below zero: its data never travels in notes.
  int64_t MostPayload(OpKind op) const;
  // Fails when a note is not one of ours.
  absl::Status ReadHeads(const Fingerprint& print);
  absl::Status CompareHeads();
  absl::Status MeetLists(CollectiveCall& call, absl::Time deadline);
  absl::Status CompareLists(CollectiveCall& call);
  void KeepDescriptions();
  // True when the notes held all the data, which is then where it belongs.
  bool FinishFromNotes(const CollectiveCall& call);
  absl::Status RunBackend(const CollectiveCall& call, absl::Time deadline);

  absl::Status Failed(const PeerFailure& failure, const CollectiveCall& call, bool arriving);
  // "; its last call was barrier #16 at trainer.cc:120", of the ranks that failed.
  std::string LastCallOf(const PeerFailure& failure) const;
  // Tells the other ranks of an error that this one found.
  absl::Status Reported(absl::Status status);
  // Records the outcome of a call.
  absl::Status Ended(absl::Status status);

  const std::unique_ptr<Transport> transport_;
  const GroupInfo group_;
  const int rank_;
  const int size_;
  const absl::Duration timeout_;
  const int64_t note_payload_bytes_;
  const std::vector<std::unique_ptr<Backend>> backends_;
  Backend* const owner_;  // the backend that owns the buffers; null if none does
  const std::shared_ptr<CallObserver> observer_;
  uint32_t observed_group_ = 0;
  PairRunner pairs_;

  uint64_t sequence_ = 0;
  absl::Status failed_;      // the first error
  size_t longest_list_ = 0;  // of the latest notes
  // By rank: the head of its latest note, or of its latest send or receive with this rank.
  std::vector<NoteHead> heads_;
  // Reused between calls.
  alignas(64) std::array<std::byte, kMostNoteBytes> note_;
  std::vector<std::span<const std::byte>> notes_;
  std::vector<std::vector<int64_t>> lists_;
  std::vector<int64_t> pair_counts_;
  std::vector<std::byte> description_bytes_;
  std::vector<std::span<const std::byte>> descriptions_;
  std::vector<const std::byte*> payloads_;

  std::atomic<bool> aborted_ = false;
  std::mutex abort_mutex_;  // guards what follows
  std::string abort_reason_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_ENGINE_ENGINE_H_
