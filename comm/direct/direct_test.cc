// Every operation, in every way that moves it, against a serial reference.
#include "plinth/comm/direct/direct.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/direct/zero_copy_probe.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::RankOutcome;
using ::plinth::comm::testing::RunProcesses;
using ::testing::HasSubstr;

constexpr int64_t kArenaBytes = int64_t{12} << 20;  // of inputs, and again of outputs

enum class Memory { kPrivate, kRegistered, kMixed };

struct Case {
  OpKind op;
  DType dtype;  // f32 or u8
  int64_t count;
  int root = -1;
  Memory memory = Memory::kPrivate;
  bool in_place = false;
};

// Sums of nine ranks fit a u8.
int Input(int rank, int64_t i) { return static_cast<int>((i * 7 + rank * 5) % 17); }

void Put(DType dtype, std::byte* to, int64_t i, int value) {
  if (dtype == DType::kU8) {
    to[i] = static_cast<std::byte>(value);
  } else {
    const auto number = static_cast<float>(value);
    std::memcpy(to + i * 4, &number, 4);
  }
}
int Get(DType dtype, const std::byte* from, int64_t i) {
  if (dtype == DType::kU8) return static_cast<int>(from[i]);
  float number;
  std::memcpy(&number, from + i * 4, 4);
  return static_cast<int>(number);
}

// Shares of v-operations: some are empty.
int64_t ShareOf(int rank, int64_t count) { return rank % 3 == 1 ? 0 : count + rank; }
int64_t PairOf(int from, int to, int64_t count) { return (from + to) % 3 == 1 ? 0 : count + from; }

// One rank of a group, with a backend and memory of both kinds.
class Member {
 public:
  Member(Transport* transport, DirectBackend::Limits limits)
      : transport_(*transport), backend_(transport, limits), private_(2 * kArenaBytes) {
    std::optional<PeerFailure> failure;
    auto memory = transport->shared()->Allocate(2 * kArenaBytes, Deadline(), failure);
    CHECK_OK(memory.status());
    registered_ = *std::move(memory);
  }

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }

  // The ranks meet as the engine lets them, then run the call.
  absl::Status Run(CollectiveCall call) {
    call.print.sequence = ++sequence_;
    call.timeout = absl::Seconds(20);
    std::byte described[kMostDescriptionBytes];
    // Where inputs differ in size, a rank is not asked if its own fits its note.
    const bool asked = call.print.op != OpKind::kAllGatherV || call.in.bytes() > 1024;
    const size_t bytes = asked ? backend_.Describe(call, described) : 0;
    std::vector<std::span<const std::byte>> notes;
    if (auto failure = transport_.Announce({described, bytes}, notes, Deadline())) {
      return Verdict(*failure, call.print, true, call.timeout);
    }
    std::vector<std::vector<std::byte>> kept;
    for (const auto note : notes) kept.emplace_back(note.begin(), note.end());
    std::vector<std::span<const std::byte>> descriptions(kept.begin(), kept.end());
    call.descriptions = descriptions;
    CHECK(backend_.Takes(call));
    return backend_.Run(call, Deadline());
  }

  // Whatever the buffers hold.
  absl::Status Repeat(const Case& c) { return Run(MakeCall(c)); }

  std::string Check(const Case& c) {
    CollectiveCall call = MakeCall(c);
    const int64_t ins = call.in.count;
    const int64_t outs = call.out.count;
    auto* in = static_cast<std::byte*>(const_cast<void*>(call.in.data));
    auto* out = static_cast<std::byte*>(call.out.data);
    for (int64_t i = 0; i < outs; ++i) Put(c.dtype, out, i, 99);
    Put(c.dtype, out, outs, 98);  // a guard
    for (int64_t i = 0; i < ins; ++i) Put(c.dtype, in, i, Input(rank(), i));
    const absl::Status status = Run(call);
    const std::string name =
        absl::StrCat(OpName(c.op), " of ", c.count, " x ", static_cast<int>(c.dtype), " root ",
                     c.root, " memory ", static_cast<int>(c.memory), c.in_place ? " in place" : "",
                     ", rank ", rank(), " of ", size(), ": ");
    if (!status.ok()) return name + status.ToString();
    for (int64_t i = 0; i < outs; ++i) {
      const int want = Expected(c, i);
      const int got = Get(c.dtype, out, i);
      if (got != want) return absl::StrCat(name, "element ", i, " is ", got, ", want ", want);
    }
    const bool guarded = outs * DTypeSize(c.dtype) + 4 < kArenaBytes && !c.in_place;
    return guarded && Get(c.dtype, out, outs) != 98 ? name + "wrote past the end" : "";
  }

 private:
  static absl::Time Deadline() { return absl::Now() + absl::Seconds(20); }

  CollectiveCall MakeCall(const Case& c) {
    CollectiveCall call;
    call.print.op = c.op;
    call.print.dtype = c.dtype;
    call.print.count = c.count;
    call.print.root = c.root;
    const bool at_root = c.root == rank();
    int64_t ins = c.count;
    int64_t outs = c.count;
    int64_t own = 0;  // where the output lies in the input, or the other way round, in place
    switch (c.op) {
      case OpKind::kReduceScatter:
        ins = c.count * size();
        own = rank() * c.count;
        break;
      case OpKind::kAllGather:
        outs = c.count * size();
        own = rank() * c.count;
        break;
      case OpKind::kReduce:
        outs = at_root ? c.count : 0;
        break;
      case OpKind::kGather:
        outs = at_root ? c.count * size() : 0;
        break;
      case OpKind::kScatter:
        ins = at_root ? c.count * size() : 0;
        break;
      case OpKind::kAllToAll:
        ins = outs = c.count * size();
        break;
      case OpKind::kReduceScatterV:
      case OpKind::kAllGatherV:
        for (int peer = 0; peer < size(); ++peer) {
          call.send_counts.push_back(ShareOf(peer, c.count));
        }
        ins = outs = 0;
        for (const int64_t share : call.send_counts) ins += share;
        outs = call.send_counts[rank()];
        if (c.op == OpKind::kAllGatherV) std::swap(ins, outs);
        break;
      case OpKind::kAllToAllV:
        ins = outs = 0;
        pairs_.clear();
        for (int from = 0; from < size(); ++from) {
          for (int to = 0; to < size(); ++to) pairs_.push_back(PairOf(from, to, c.count));
        }
        for (int peer = 0; peer < size(); ++peer) {
          ins += PairOf(rank(), peer, c.count);
          outs += PairOf(peer, rank(), c.count);
        }
        call.pair_counts = pairs_;
        break;
      default:
        break;
    }
    if (c.op == OpKind::kAllReduce || c.op == OpKind::kReduceScatter ||
        c.op == OpKind::kReduceScatterV || c.op == OpKind::kReduce) {
      call.print.reduce = ReduceOp::kSum;
    }
    const bool registered =
        c.memory == Memory::kRegistered || (c.memory == Memory::kMixed && rank() % 2 == 0);
    // Elsewhere on every rank, and not aligned to anything.
    std::byte* base = (registered ? registered_.data() : private_.data()) + 68 * rank();
    const int64_t width = DTypeSize(c.dtype);
    CHECK_LE((std::max(ins, outs) + 1) * width + 68 * size(), kArenaBytes);
    std::byte* in = base;
    std::byte* out = base + kArenaBytes;
    if (c.op == OpKind::kBroadcast) in = out;
    if (c.in_place && c.op == OpKind::kAllGather) in = out + own * width;
    if (c.in_place && c.op != OpKind::kAllGather) out = in + own * width;
    call.in = {in, ins, c.dtype};
    call.out = {out, outs, c.dtype};
    return call;
  }

  int Expected(const Case& c, int64_t i) const {
    const auto sum = [&](int64_t at) {
      int total = 0;
      for (int peer = 0; peer < size(); ++peer) total += Input(peer, at);
      return total;
    };
    int64_t at = 0;
    switch (c.op) {
      case OpKind::kAllReduce:
      case OpKind::kReduce:
        return sum(i);
      case OpKind::kReduceScatter:
        return sum(rank() * c.count + i);
      case OpKind::kReduceScatterV:
        for (int peer = 0; peer < rank(); ++peer) at += ShareOf(peer, c.count);
        return sum(at + i);
      case OpKind::kBroadcast:
        return Input(c.root, i);
      case OpKind::kScatter:
        return Input(c.root, rank() * c.count + i);
      case OpKind::kAllToAll:
        return Input(static_cast<int>(i / c.count), rank() * c.count + i % c.count);
      case OpKind::kAllGatherV: {
        int from = 0;
        for (; i - at >= ShareOf(from, c.count); ++from) at += ShareOf(from, c.count);
        return Input(from, i - at);
      }
      case OpKind::kAllToAllV: {
        int from = 0;
        for (; i - at >= PairOf(from, rank(), c.count); ++from) at += PairOf(from, rank(), c.count);
        int64_t before = 0;
        for (int peer = 0; peer < rank(); ++peer) before += PairOf(from, peer, c.count);
        return Input(from, before + i - at);
      }
      default:  // all_gather, gather
        return Input(static_cast<int>(i / c.count), i % c.count);
    }
  }

  Transport& transport_;
  DirectBackend backend_;
  SharedMemory registered_;
  std::vector<std::byte> private_;
  std::vector<int64_t> pairs_;
  uint64_t sequence_ = 0;
};

std::vector<Case> AllCases(int size, std::span<const int64_t> counts) {
  std::vector<Case> cases;
  for (const int64_t count : counts) {
    for (const Memory memory : {Memory::kPrivate, Memory::kRegistered, Memory::kMixed}) {
      const DType dtype = memory == Memory::kMixed ? DType::kU8 : DType::kF32;
      for (const OpKind op :
           {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kAllToAll}) {
        cases.push_back({op, dtype, count, -1, memory, false});
        cases.push_back({op, dtype, count, -1, memory, true});
      }
      for (const OpKind op : {OpKind::kReduceScatterV, OpKind::kAllGatherV, OpKind::kAllToAllV}) {
        cases.push_back({op, dtype, count, -1, memory});
      }
      for (const OpKind op :
           {OpKind::kBroadcast, OpKind::kReduce, OpKind::kGather, OpKind::kScatter}) {
        for (const int root : std::set<int>{0, size / 2, size - 1}) {
          cases.push_back({op, dtype, count, root, memory});
        }
      }
    }
  }
  return cases;
}

std::string CheckAll(Transport* transport, std::span<const int64_t> counts,
                     DirectBackend::Limits limits) {
  Member member(transport, limits);
  for (const Case& c : AllCases(member.size(), counts)) {
    std::string failure = member.Check(c);
    if (!failure.empty()) return failure;
  }
  return "";
}

// Small, then more than goes early, then several pieces.
std::vector<int64_t> CountsFor(int size) {
  return {0, 1, 7, 4099, size <= 2 ? 150001 : size <= 5 ? 40001 : 20001};
}

void RunThreads(int size, const std::function<std::string(Transport*)>& body) {
  auto ends = ConnectMem(size);
  std::vector<std::string> reports(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { reports[rank] = body(ends[rank].get()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& report : reports) EXPECT_EQ(report, "");
}

std::vector<RankOutcome> RunShm(int size, const std::function<std::string(Transport*)>& body) {
  const int port = FreePort();
  return RunProcesses(size, [&](int rank) -> std::string {
    const CommOptions options =
        LocalOptions(rank, size, port, TransportKind::kShm, absl::Seconds(20));
    const absl::Time deadline = absl::Now() + options.timeout;
    const auto store = Store::Open(options, deadline);
    if (!store.ok()) return store.status().ToString();
    const auto transport = ConnectShm(options, **store, deadline);
    return transport.ok() ? body(transport->get()) : transport.status().ToString();
  });
}

TEST(Direct, ThreadsInPlace) {
  for (const int size : {1, 2, 4}) {
    RunThreads(size, [size](Transport* t) { return CheckAll(t, CountsFor(size), {}); });
  }
}

TEST(Direct, ThreadsStaged) {
  for (const int size : {2, 3, 5}) {
    RunThreads(size, [size](Transport* t) {
      return CheckAll(t, CountsFor(size),
                      {.early_bytes = 64, .in_place = false, .reads_peers = false});
    });
  }
}

// Everything past the caches.
TEST(Direct, ThreadsToMemory) {
  for (const bool in_place : {false, true}) {
    RunThreads(3, [&](Transport* t) {
      return CheckAll(
          t, CountsFor(3),
          {.early_bytes = 0, .memory_bytes = 0, .in_place = in_place, .reads_peers = in_place});
    });
  }
}

TEST(Direct, Processes) {
  for (const int size : {2, 3, 9}) {
    const auto outcomes =
        RunShm(size, [size](Transport* t) { return CheckAll(t, CountsFor(size), {}); });
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
  }
}

TEST(Probe, DoesTheWorkOfAnAllReduce) {
  const auto outcomes = RunShm(2, [](Transport* t) -> std::string {
    std::optional<PeerFailure> failure;
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    auto memory = t->shared()->Allocate(4096, deadline, failure);
    if (!memory.ok()) return memory.status().ToString();
    for (int64_t i = 0; i < 1000; ++i) Put(DType::kF32, memory->data(), i, Input(t->rank(), i));
    const auto time = ProbeAllReduce(*t, *memory, 4000, 1, StoreTo::kMemory, deadline);
    if (!time.ok()) return time.status().ToString();
    if (*time <= absl::ZeroDuration()) return "took no time";
    if (t->shared()->Meet(0, 1, deadline).has_value()) return "the other is gone";
    for (int64_t i = 0; i < 1000; ++i) {
      if (Get(DType::kF32, memory->data(), i) != Input(0, i) + Input(1, i)) return "wrong sum";
    }
    return "";
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.report, "");
}

std::set<std::string> FilesIn(const char* directory) {
  std::set<std::string> names;
  DIR* dir = opendir(directory);
  while (const dirent* entry = readdir(dir)) names.insert(entry->d_name);
  closedir(dir);
  return names;
}

// Killed in the middle of a call that is staged, in place or read, a rank is named at once.
class DirectKilled : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Ways, DirectKilled,
    ::testing::Values(Case{OpKind::kAllReduce, DType::kF32, 2000000, -1, Memory::kPrivate},
                      Case{OpKind::kAllReduce, DType::kF32, 2000000, -1, Memory::kRegistered},
                      Case{OpKind::kAllGather, DType::kF32, 900000, -1, Memory::kPrivate}));

TEST_P(DirectKilled, IsNamedAtOnceAndLeavesNothing) {
  const std::set<std::string> before = FilesIn("/dev/shm");
  const auto outcomes = RunShm(3, [](Transport* t) -> std::string {
    Member member(t, {});
    if (t->rank() == 1) ualarm(150000, 0);  // SIGALRM's default ends the process
    const absl::Time end = absl::Now() + absl::Milliseconds(900);
    absl::Status status;
    while (status.ok()) status = member.Repeat(GetParam());
    // As the engine does, so that the other does not blame this rank for leaving.
    if (!absl::IsAborted(status)) t->Abort(std::string(status.message()));
    return absl::StrCat(absl::Now() < end ? "" : "late: ", status.ToString());
  });
  EXPECT_EQ(outcomes[1].signal, SIGALRM);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(outcomes[rank].report,
                ::testing::MatchesRegex("(UNAVAILABLE|ABORTED: aborted by rank [02]): rank 1 did "
                                        "not .*: process is gone"));
  }
  EXPECT_EQ(FilesIn("/dev/shm"), before);
}

TEST(Direct, RegisteredMemoryThatOneRankCannotHaveIsRefusedToAll) {
  const auto outcomes = RunShm(3, [](Transport* t) -> std::string {
    std::optional<PeerFailure> failure;
    const int64_t bytes = t->rank() == 1 ? int64_t{1} << 50 : 4096;
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    const auto refused = t->shared()->Allocate(bytes, deadline, failure);
    // The group is as good as before, and ranks may ask for different sizes, also none.
    const auto given = t->shared()->Allocate(t->rank() * 1000, deadline, failure);
    if (!given.ok() || failure.has_value()) return "the second is refused too";
    const SharedPlace place = t->shared()->PlaceOf(given->data(), given->bytes());
    if (t->rank() > 0 && (place.region != 2 || place.offset != 0)) return "wrong place";
    if (t->shared()->PlaceOf(given->data(), given->bytes() + 1).region != 0) return "too much";
    return refused.status().ToString();
  });
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.report,
                ::testing::ContainsRegex("^RESOURCE_EXHAUSTED: rank 1: need 1073741824 MiB in "
                                         "/dev/shm, have [0-9]+: "));
  }
}

}  // namespace
}  // namespace plinth::comm
