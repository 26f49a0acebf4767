// GradientReducer: sums gradients over ranks, bucket by bucket, while backward goes on.
#ifndef PLINTH_TRAIN_DATA_PARALLEL_GRADIENT_REDUCER_H_
#define PLINTH_TRAIN_DATA_PARALLEL_GRADIENT_REDUCER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plinth/comm/comm.h"
#include "plinth/hardware/device/device.h"
#include "plinth/train/optim/gradient_store.h"

namespace plinth::train {

// store.ExpectLast([&](int b) { reducer.Start(b); }); backward; store.FinishStep();
// reducer.Finish();   // now every rank holds the same sums, bit for bit
//
// Collectives start in bucket order on every rank. On a device whose memory the host cannot
// read, a bucket goes through host memory: a collective then starts once its copy is done, at
// the next call of Start or Finish.
// Owns     host copies of the buckets, on such devices only.
// Threads  used by one thread; the communicator's own thread moves the bytes.
class GradientReducer {
 public:
  // All outlive the reducer. A group of one makes every call free.
  GradientReducer(GradientStore* store, comm::Communicator* comm, Stream* stream);
  // Waits for collectives under way.
  ~GradientReducer();

  // The stream holds all work on this bucket. Each bucket once per step, in order.
  void Start(int bucket);
  // Waits until all buckets hold the sums. Errors: the communicator's, or the device's; then
  // the gradients are undefined.
  absl::Status Finish();

 private:
  struct Staged {
    std::vector<float> host;
    std::shared_ptr<Event> copied;
  };

  comm::Buffer HostBuffer(int bucket);
  // Starts collectives of buckets whose host copy is complete.
  void Launch();

  GradientStore* const store_;
  comm::Communicator* const comm_;
  Stream* const stream_;
  const bool in_place_;
  int started_ = 0;   // buckets handed to Start
  int launched_ = 0;  // buckets whose collective runs
  std::vector<Staged> staged_;
  // Last, so that collectives end before the memory that they use goes.
  std::vector<std::unique_ptr<comm::Work>> works_;
};

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_DATA_PARALLEL_GRADIENT_REDUCER_H_
