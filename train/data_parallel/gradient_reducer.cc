#include "plinth/train/data_parallel/gradient_reducer.h"

#include "absl/time/time.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::train {

GradientReducer::GradientReducer(GradientStore* store, comm::Communicator* comm, Stream* stream)
    : store_(store),
      comm_(comm),
      stream_(stream),
      in_place_(stream->device().host_accessible()),
      staged_(store->layout().buckets().size()) {}

GradientReducer::~GradientReducer() = default;

void GradientReducer::Start(int bucket) {
  if (comm_->size() == 1) return;
  CHECK_EQ(bucket, started_);
  ++started_;
  if (!in_place_) {
    const TensorView view = store_->bucket(bucket);
    Staged& staged = staged_[bucket];
    staged.host.resize(static_cast<size_t>(view.elements()));
    stream_->CopyOut(staged.host.data(), view.data, view.bytes());
    staged.copied = stream_->Record();
  }
  Launch();
}

absl::Status GradientReducer::Finish() {
  if (comm_->size() == 1) return absl::OkStatus();
  CHECK_EQ(started_, static_cast<int>(staged_.size()));
  RETURN_IF_ERROR(stream_->Synchronize()) << "backward";
  Launch();
  absl::Status first;
  // The communicator bounds every operation by its own deadline, so none waits for ever.
  for (const auto& work : works_) first.Update(work->Wait(absl::InfiniteDuration()));
  works_.clear();
  started_ = launched_ = 0;
  RETURN_IF_ERROR(first) << "reducing gradients";
  if (in_place_) return absl::OkStatus();
  for (int b = 0; b < static_cast<int>(staged_.size()); ++b) {
    const TensorView view = store_->bucket(b);
    stream_->CopyIn(view.data, staged_[b].host.data(), view.bytes());
  }
  return absl::OkStatus();
}

comm::Buffer GradientReducer::HostBuffer(int bucket) {
  const TensorView view = store_->bucket(bucket);
  void* data = in_place_ ? view.data : staged_[bucket].host.data();
  return {.data = data, .count = view.elements(), .dtype = DType::kF32};
}

void GradientReducer::Launch() {
  while (launched_ < started_ && (in_place_ || staged_[launched_].copied->done())) {
    works_.push_back(comm_->AllReduceAsync(HostBuffer(launched_++)));
  }
}

}  // namespace plinth::train
