// How groups form: from a launch's options, or out of another group.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/collective/introduction.h"
#include "plinth/comm/executor/program_backend.h"
#include "plinth/comm/recorder/recording_observer.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/mpi/connect.h"
#include "plinth/comm/transport/nccl/connect.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/comm/transport/tcp/connect.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

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

absl::StatusOr<std::unique_ptr<Transport>> Connect(const CommOptions& options, Store* store,
                                                   absl::Time deadline) {
  if (options.size == 1) return std::move(ConnectMem(1).front());
  if (options.transport == TransportKind::kMpi) return ConnectMpi(options, *store, deadline);
  const bool one_host = options.local_size == options.size;
  const bool shm = options.transport == TransportKind::kShm ||
                   (options.transport != TransportKind::kTcp && one_host);
  return shm ? ConnectShm(options, *store, deadline) : ConnectTcp(options, *store, deadline);
}

// The store may be null for a group of one.
absl::StatusOr<GroupLinks> ConnectGroup(const CommOptions& options, Store* store,
                                        absl::Time deadline) {
  GroupLinks links;
  ASSIGN_OR_RETURN(links.transport, Connect(options, store, deadline));
  if (options.transport == TransportKind::kNccl) {
    const NcclFiles files{.nccl = options.nccl_library};
    ASSIGN_OR_RETURN(std::unique_ptr<Backend> nccl,
                     ConnectNccl(options, *links.transport, deadline, files));
    links.backends.push_back(std::move(nccl));
  }
  return links;
}

// What each rank tells all others when a group splits. Plain bytes.
struct Wish {
  int32_t color;
  int32_t key;
};

// Ranks of the group that this one belongs to after the split, in their new order.
std::vector<int> MembersOf(std::span<const Wish> wishes, int32_t color) {
  std::vector<int> members;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) members.push_back(static_cast<int>(rank));
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return wishes[a].key < wishes[b].key; });
  return members;
}

GroupPlan PlanFor(std::span<const uint64_t> hosts, const std::vector<int>& members, int rank) {
  GroupPlan plan;
  plan.size = static_cast<int>(members.size());
  plan.local_size = 0;
  for (int i = 0; i < plan.size; ++i) {
    if (members[i] == rank) {
      plan.rank = i;
      plan.local_rank = plan.local_size;
    }
    if (hosts[members[i]] == hosts[rank]) ++plan.local_size;
  }
  return plan;
}

// The flight recorder that every launch has. The port tells launches of one host apart that have
// no name.
std::shared_ptr<CallObserver> MakeRecorder(const CommOptions& options, std::string transport) {
  RecordingOptions recording;
  recording.run =
      options.run_id.empty() ? absl::StrCat("port", options.store_port) : options.run_id;
  recording.transport = std::move(transport);
  return std::make_shared<RecordingObserver>(std::move(recording));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(
    const CommOptions& options, std::shared_ptr<Store> store,
    std::shared_ptr<CallObserver> observer) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(Pins pins, PinsOf(options.algorithm));
  ASSIGN_OR_RETURN(TableSet tables, TableSet::Load(options.tuning), _ << "PLINTH_COMM_TUNING");
  const absl::Time deadline = absl::Now() + options.timeout;
  if (store == nullptr && options.size > 1) {
    ASSIGN_OR_RETURN(store, Store::Open(options, deadline));
  }
  absl::StatusOr<GroupLinks> links = ConnectGroup(options, store.get(), deadline);
  RETURN_IF_ERROR(links.status()) << "rank " << options.rank << " cannot form group "
                                  << options.group;
  GroupOptions group;
  group.timeout = options.timeout;
  group.path = options.group;
  if (options.group != CommOptions().group) group.name = options.group;
  group.pins = std::move(pins);
  if (options.size > 1) {
    ASSIGN_OR_RETURN(group.hosts, Introduce(options, tables, *links->transport, deadline));
  }
  group.tables = std::move(tables);
  if (observer == nullptr && options.size > 1) {
    observer = MakeRecorder(options, std::string(links->transport->name()));
  }
  group.observer = std::move(observer);
  // The store lives on in it: ranks read each other's addresses until the last of them is
  // connected, which may be after this rank is.
  group.connector = [options, store](const GroupPlan& plan, absl::Time until) {
    CommOptions part = options;
    part.group = plan.path;
    part.rank = plan.rank;
    part.size = plan.size;
    part.local_rank = plan.local_rank;
    part.local_size = plan.local_size;
    return ConnectGroup(part, store.get(), until);
  };
  group.backends = std::move(links->backends);
  return std::make_unique<Communicator>(std::move(links->transport), std::move(group));
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(int color, int key,
                                                                  std::string_view name,
                                                                  const CallOptions& options) {
  if (color < kNoColor) {
    return absl::InvalidArgumentError(absl::StrCat("split: color ", color, " is below -1"));
  }
  return Form(color, key, name, {}, options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Subgroup(std::span<const int> ranks,
                                                                     std::string_view name,
                                                                     const CallOptions& options) {
  int color = kNoColor;
  int key = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size() ||
        std::count(ranks.begin(), ranks.end(), ranks[i]) != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "subgroup: rank ", ranks[i], " is twice on the list or not in a group of ", size()));
    }
    if (ranks[i] != rank()) continue;
    color = 0;
    key = static_cast<int>(i);
  }
  if (ranks.empty()) return absl::InvalidArgumentError("subgroup: the list of ranks is empty");
  return Form(color, key, name, ranks, options);
}

absl::StatusOr<SharedMemory> Communicator::Allocate(int64_t bytes, const CallOptions& options) {
  if (bytes <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("allocate: ", bytes, " bytes"));
  }
  CollectiveCall call;
  call.print.op = OpKind::kAllocate;
  call.print.dtype = DType::kU8;
  const uint64_t observed = Prepare(call, options);
  AwaitTurn();
  absl::StatusOr<SharedMemory> memory = engine_.Allocate(call, bytes, observed);
  EndTurn();
  return memory;
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Form(int color, int key,
                                                                 std::string_view name,
                                                                 std::span<const int> list,
                                                                 const CallOptions& options) {
  const Wish wish{color, key};
  std::vector<Wish> wishes(size());
  CollectiveCall call;
  call.print.op = OpKind::kSplit;
  call.print.dtype = DType::kU8;
  call.print.count = sizeof(Wish);
  call.in = {&wish, sizeof(Wish), DType::kU8};
  call.out = {wishes.data(), static_cast<int64_t>(sizeof(Wish)) * size(), DType::kU8};
  call.send_counts.assign(list.begin(), list.end());
  const uint64_t observed = Prepare(call, options);
  const absl::Time deadline =
      absl::Now() + (options.timeout == absl::ZeroDuration() ? engine_.timeout() : options.timeout);
  // The turn lasts until the new group is connected: groups form in one order on all ranks.
  AwaitTurn();
  absl::StatusOr<GroupLinks> links = GroupLinks();
  std::vector<int> members;
  const absl::Status met = engine_.Run(call, observed);
  GroupPlan plan;
  if (met.ok() && color != kNoColor) {
    members = MembersOf(wishes, color);
    plan = PlanFor(group().hosts, members, rank());
    plan.path = absl::StrCat(path_, "/", call.print.sequence, ".", color);
    if (connector_ != nullptr) {
      links = connector_(plan, deadline);
    } else if (plan.size == 1) {
      links->transport = std::move(ConnectMem(1).front());
    } else {
      links = absl::FailedPreconditionError("this group was made without a way to split it");
    }
  }
  EndTurn();
  RETURN_IF_ERROR(met);
  RETURN_IF_ERROR(links.status()) << "rank " << group().world_ranks[rank()] << " cannot form group "
                                  << (name.empty() ? plan.path : std::string(name));
  if (color == kNoColor) return nullptr;

  GroupOptions part;
  part.timeout = engine_.timeout();
  part.path = plan.path;
  part.name = name.empty() ? plan.path : std::string(name);
  for (const int member : members) {
    part.world_ranks.push_back(group().world_ranks[member]);
    part.hosts.push_back(group().hosts[member]);
  }
  part.pins = pins_;
  part.tables = tables_;
  part.observer = observer_;
  part.connector = connector_;
  part.backends = std::move(links->backends);
  return std::make_unique<Communicator>(std::move(links->transport), std::move(part));
}

}  // namespace plinth::comm
