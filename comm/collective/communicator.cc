// The turns that calls take.
#include "plinth/comm/collective/communicator.h"

#include <numeric>
#include <utility>

#include "plinth/comm/direct/direct.h"
#include "plinth/comm/executor/program_backend.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

GroupInfo InfoOf(const GroupOptions& options, const Transport& transport) {
  GroupInfo group;
  group.name = options.name;
  group.rank = transport.rank();
  group.world_ranks = options.world_ranks;
  if (group.world_ranks.empty()) {
    group.world_ranks.resize(transport.size());
    std::iota(group.world_ranks.begin(), group.world_ranks.end(), 0);
  }
  group.hosts = options.hosts;
  if (group.hosts.empty()) group.hosts.resize(transport.size());
  return group;
}

// The programs come last: they run every call on every transport.
CollectiveEngine MakeEngine(std::unique_ptr<Transport> transport, GroupOptions& options) {
  GroupInfo group = InfoOf(options, *transport);
  std::vector<std::unique_ptr<Backend>> backends = std::move(options.backends);
  if (transport->shared() != nullptr && options.pins.empty()) {
    backends.push_back(std::make_unique<DirectBackend>(transport.get()));
  }
  backends.push_back(std::make_unique<ProgramBackend>(
      transport.get(), options.tables.For(transport->name()), options.pins, group.RanksPerHost()));
  return CollectiveEngine(
      std::move(transport), std::move(group),
      {options.timeout, options.note_payload_bytes, std::move(backends), options.observer});
}

GroupOptions WithTimeout(absl::Duration timeout) {
  GroupOptions options;
  options.timeout = timeout;
  return options;
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport, absl::Duration timeout)
    : Communicator(std::move(transport), WithTimeout(timeout)) {}

Communicator::Communicator(std::unique_ptr<Transport> transport, GroupOptions options)
    : path_(options.path),
      pins_(options.pins),
      tables_(options.tables),
      observer_(options.observer),
      connector_(std::move(options.connector)),
      engine_(MakeEngine(std::move(transport), options)),
      arguments_(engine_.group()) {}

Communicator::~Communicator() {
  engine_.Leaving();
  std::thread progress;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    progress = std::move(progress_);
  }
  turn_or_work_.notify_all();
  if (progress.joinable()) progress.join();
}

void Communicator::Abort(std::string_view reason) { engine_.Abort(reason); }

uint64_t Communicator::Prepare(CollectiveCall& call, const CallOptions& options) {
  call.site = options.site;
  call.timeout = options.timeout;
  call.group = &engine_.group();
  return engine_.Observe(call);
}

void Communicator::Prepare(PairCalls& pairs, const CallOptions& options) {
  pairs.timeout = options.timeout;
  for (CollectiveCall& call : pairs.calls) pairs.observed.push_back(Prepare(call, options));
}

absl::Status Communicator::Perform(absl::StatusOr<CollectiveCall> call,
                                   const CallOptions& options) {
  RETURN_IF_ERROR(call.status());
  const uint64_t observed = Prepare(*call, options);
  AwaitTurn();
  absl::Status status = engine_.Run(*call, observed);
  EndTurn();
  return status;
}

std::unique_ptr<Work> Communicator::Launch(absl::StatusOr<CollectiveCall> call,
                                           const CallOptions& options) {
  if (!call.ok()) return Refused(call.status());
  const uint64_t observed = Prepare(*call, options);
  return Enqueue(
      [this, call = *std::move(call), observed]() mutable { return engine_.Run(call, observed); });
}

absl::Status Communicator::PerformPairs(absl::StatusOr<PairCalls> pairs,
                                        const CallOptions& options) {
  RETURN_IF_ERROR(pairs.status());
  Prepare(*pairs, options);
  AwaitTurn();
  absl::Status status = engine_.RunPairs(*pairs);
  EndTurn();
  return status;
}

std::unique_ptr<Work> Communicator::LaunchPairs(absl::StatusOr<PairCalls> pairs,
                                                const CallOptions& options) {
  if (!pairs.ok()) return Refused(pairs.status());
  Prepare(*pairs, options);
  return Enqueue([this, pairs = *std::move(pairs)]() mutable { return engine_.RunPairs(pairs); });
}

std::unique_ptr<Work> Communicator::Refused(absl::Status status) {
  auto state = std::make_shared<Work::State>();
  Work::Finish(*state, std::move(status));
  return std::make_unique<Work>(std::move(state));
}

std::unique_ptr<Work> Communicator::Enqueue(std::function<absl::Status()> run) {
  auto state = std::make_shared<Work::State>();
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({next_ticket_++, std::move(run), state});
    if (!progress_.joinable()) progress_ = std::thread([this] { Progress(); });
  }
  turn_or_work_.notify_all();
  return std::make_unique<Work>(std::move(state));
}

// Calls take tickets, and each is run by its own thread, or by the progress thread, when its
// ticket comes up: a blocking call with nothing before it costs no switch of threads.
void Communicator::AwaitTurn() {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  if (serving_ == ticket) return;
  ++waiting_;
  // Bounded: each call before this one ends within its own timeout.
  turn_or_work_.wait(lock, [&] { return serving_ == ticket; });
  --waiting_;
}

void Communicator::EndTurn() {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    ++serving_;
    wake = waiting_ > 0;
  }
  if (wake) turn_or_work_.notify_all();
}

void Communicator::Progress() {
  while (true) {
    Queued next;
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      turn_or_work_.wait(
          lock, [this] { return queue_.empty() ? ending_ : queue_.front().ticket == serving_; });
      --waiting_;
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    absl::Status status = next.run();
    EndTurn();
    Work::Finish(*next.state, std::move(status));
  }
}

}  // namespace plinth::comm
