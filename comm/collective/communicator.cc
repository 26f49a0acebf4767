#include "plinth/comm/collective/communicator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/comm/transport/tcp/connect.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

std::string Text(DType dtype) { return std::string(DTypeName(dtype)); }

absl::Status CheckOptions(const CommOptions& o) {
  if (o.size < 1 || o.rank < 0 || o.rank >= o.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", o.rank, " does not lie in a group of ", o.size));
  }
  if (o.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the timeout of a group must be above zero");
  }
  if (o.transport == TransportKind::kShm && o.local_size < o.size) {
    return absl::InvalidArgumentError(absl::StrCat("shm was asked for, but only ", o.local_size,
                                                   " of ", o.size, " ranks are on this host"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuffer(const char* name, const ConstBuffer& buffer) {
  if (buffer.count < 0 || (buffer.count > 0 && buffer.data == nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", buffer.count, " elements at ",
                     buffer.data == nullptr ? "no address" : "an address"));
  }
  return absl::OkStatus();
}

absl::Status CheckReduce(ReduceOp op, DType dtype) {
  if (CanReduce(op, dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot reduce ", Text(dtype), " by ", std::string(ReduceOpName(op))));
}

// `whole` must hold one `part` per rank.
absl::Status CheckParts(const char* part_name, const ConstBuffer& part, const char* whole_name,
                        const ConstBuffer& whole, int size) {
  RETURN_IF_ERROR(CheckBuffer(part_name, part));
  RETURN_IF_ERROR(CheckBuffer(whole_name, whole));
  // Divided rather than multiplied: counts may be absurd.
  if (part.dtype != whole.dtype || whole.count % size != 0 || whole.count / size != part.count) {
    return absl::InvalidArgumentError(absl::StrCat(whole_name, " holds ", Text(whole.dtype), " x ",
                                                   whole.count, ", want ", size, " times the ",
                                                   Text(part.dtype), " x ", part.count, " of ",
                                                   part_name, ", once for each rank"));
  }
  return absl::OkStatus();
}

CollectiveCall MakeCall(OpKind op, ReduceOp reduce, const ConstBuffer& in, const Buffer& out,
                        int64_t count, int root = -1) {
  CollectiveCall call;
  call.print.op = op;
  call.print.reduce = reduce;
  call.print.dtype = out.dtype;
  call.print.count = count;
  call.print.root = root;
  call.in = in;
  call.out = out;
  return call;
}

absl::StatusOr<std::unique_ptr<Transport>> Connect(const CommOptions& options, Store& store,
                                                   absl::Time deadline) {
  const bool one_host = options.local_size == options.size;
  const bool shm = options.transport == TransportKind::kShm ||
                   (options.transport == TransportKind::kAuto && one_host);
  return shm ? ConnectShm(options, store, deadline) : ConnectTcp(options, store, deadline);
}

}  // namespace

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

Work::~Work() { Wait(absl::InfiniteDuration()).IgnoreError(); }

absl::Status Work::Wait(absl::Duration limit) {
  std::unique_lock lock(state_->mutex);
  const auto done = [this] { return state_->done; };
  // Longer ones overflow inside the standard library, and no operation takes that long.
  const absl::Duration bounded = std::min(limit, absl::Hours(24 * 365));
  if (!state_->ended.wait_for(lock, absl::ToChronoNanoseconds(bounded), done)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the operation has not ended after ", absl::FormatDuration(limit)));
  }
  return state_->status;
}

void Work::Finish(State& state, absl::Status status) {
  {
    std::lock_guard lock(state.mutex);
    state.done = true;
    state.status = std::move(status);
  }
  state.ended.notify_all();
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(const CommOptions& options) {
  return Create(options, nullptr);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(const CommOptions& options,
                                                                   std::shared_ptr<Store> store) {
  RETURN_IF_ERROR(CheckOptions(options));
  const absl::Time deadline = absl::Now() + options.timeout;
  if (options.size == 1) {
    return std::make_unique<Communicator>(std::move(ConnectMem(1).front()), options.timeout);
  }
  if (store == nullptr) {
    ASSIGN_OR_RETURN(store, Store::Open(options, deadline));
  }
  absl::StatusOr<std::unique_ptr<Transport>> transport = Connect(options, *store, deadline);
  RETURN_IF_ERROR(transport.status())
      << "rank " << options.rank << " cannot form group " << options.group;
  auto comm = std::make_unique<Communicator>(*std::move(transport), options.timeout);
  comm->store_ = std::move(store);
  return comm;
}

Communicator::Communicator(std::unique_ptr<Transport> transport, absl::Duration timeout)
    : engine_(std::move(transport), timeout) {}

Communicator::~Communicator() {
  std::thread progress;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    progress = std::move(progress_);
  }
  turn_or_work_.notify_all();
  if (progress.joinable()) progress.join();
}

absl::Status Communicator::AllReduce(const Buffer& buffer, ReduceOp op) {
  RETURN_IF_ERROR(CheckBuffer("buffer", buffer));
  RETURN_IF_ERROR(CheckReduce(op, buffer.dtype));
  return RunInTurn(MakeCall(OpKind::kAllReduce, op, buffer, buffer, buffer.count));
}

std::unique_ptr<Work> Communicator::AllReduceAsync(const Buffer& buffer, ReduceOp op) {
  auto state = std::make_shared<Work::State>();
  std::unique_ptr<Work> work(new Work(state));
  absl::Status status = CheckBuffer("buffer", buffer);
  status.Update(CheckReduce(op, buffer.dtype));
  if (!status.ok()) {
    Work::Finish(*state, status);
    return work;
  }
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({next_ticket_++,
                      MakeCall(OpKind::kAllReduce, op, buffer, buffer, buffer.count),
                      std::move(state)});
    if (!progress_.joinable()) progress_ = std::thread([this] { Progress(); });
  }
  turn_or_work_.notify_all();
  return work;
}

absl::Status Communicator::ReduceScatter(const ConstBuffer& in, const Buffer& out, ReduceOp op) {
  RETURN_IF_ERROR(CheckParts("out", out, "in", in, size()));
  RETURN_IF_ERROR(CheckReduce(op, out.dtype));
  return RunInTurn(MakeCall(OpKind::kReduceScatter, op, in, out, out.count));
}

absl::Status Communicator::AllGather(const ConstBuffer& in, const Buffer& out) {
  RETURN_IF_ERROR(CheckParts("in", in, "out", out, size()));
  return RunInTurn(MakeCall(OpKind::kAllGather, ReduceOp::kNone, in, out, in.count));
}

absl::Status Communicator::Broadcast(const Buffer& buffer, int root) {
  RETURN_IF_ERROR(CheckBuffer("buffer", buffer));
  if (root < 0 || root >= size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("root ", root, " does not lie in a group of ", size()));
  }
  return RunInTurn(
      MakeCall(OpKind::kBroadcast, ReduceOp::kNone, buffer, buffer, buffer.count, root));
}

absl::Status Communicator::Barrier() {
  return RunInTurn(MakeCall(OpKind::kBarrier, ReduceOp::kNone, {}, {}, 0));
}

// Calls take tickets, and each is run by its own thread, or by the progress thread, when its
// ticket comes up: a blocking call with nothing before it costs no switch of threads.
absl::Status Communicator::RunInTurn(const CollectiveCall& call) {
  {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_ticket_++;
    // Bounded: each call before this one ends within its own timeout.
    turn_or_work_.wait(lock, [&] { return serving_ == ticket; });
  }
  absl::Status status = engine_.Run(call);
  EndTurn();
  return status;
}

void Communicator::Progress() {
  while (true) {
    Queued next;
    {
      std::unique_lock lock(mutex_);
      turn_or_work_.wait(
          lock, [this] { return queue_.empty() ? ending_ : queue_.front().ticket == serving_; });
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    absl::Status status = engine_.Run(next.call);
    EndTurn();
    Work::Finish(*next.state, std::move(status));
  }
}

void Communicator::EndTurn() {
  {
    std::lock_guard lock(mutex_);
    ++serving_;
  }
  turn_or_work_.notify_all();
}

}  // namespace plinth::comm
