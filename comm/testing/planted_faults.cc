#include "plinth/comm/testing/planted_faults.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/run_view.h"
#include "plinth/comm/recorder/blame.h"
#include "plinth/comm/recorder/dump.h"
#include "plinth/comm/recorder/recorder.h"
#include "plinth/comm/recorder/recording_observer.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/testing/faults.h"
#include "plinth/comm/testing/legal_programs.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/shm/connect.h"
#include "plinth/comm/transport/tcp/connect.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm::testing {
namespace {

constexpr int kCalls = 24;
constexpr absl::Duration kForming = absl::Seconds(30);
// Longer than any survivor waits.
constexpr absl::Duration kSlowness = absl::Milliseconds(1600);
constexpr absl::Duration kGrace = absl::Seconds(1);

// What a rank tells of its end: how long the call took that failed, and its status.
struct Ending {
  absl::Duration waited;
  absl::Status status;
};

std::string Encode(const Ending& ending) {
  return absl::StrCat(absl::ToInt64Milliseconds(ending.waited), "|",
                      static_cast<int>(ending.status.code()), "|",
                      std::string(ending.status.message()));
}

Ending Decode(const std::string& report) {
  const std::vector<std::string> parts = absl::StrSplit(report, absl::MaxSplits('|', 2));
  if (parts.size() != 3) return {absl::ZeroDuration(), absl::UnknownError(report)};
  return {absl::Milliseconds(std::atoi(parts[0].c_str())),
          absl::Status(static_cast<absl::StatusCode>(std::atoi(parts[1].c_str())), parts[2])};
}

bool Mismatched(PlantedKind kind) {
  return kind >= PlantedKind::kWrongOp && kind <= PlantedKind::kOneTooMany;
}

// Call `index` of the program, as all ranks shall make it. The call at which the fault is planted
// has what the fault needs: a dtype, a size, a root.
LegalCall RightCall(const PlantedFault& fault, uint64_t index) {
  LegalCall call = CallOf(fault.seed, index, kPlantedRanks);
  if (index != fault.at_call) return call;
  if (fault.kind == PlantedKind::kWrongSize || fault.kind == PlantedKind::kWrongDType) {
    call.op = OpKind::kAllReduce;
    call.count = std::max<int64_t>(1, call.count);
    call.dtype = DType::kF32;
  }
  if (fault.kind == PlantedKind::kWrongRoot) call.op = OpKind::kBroadcast;
  return call;
}

LegalCall WrongCall(const PlantedFault& fault) {
  LegalCall call = RightCall(fault, fault.at_call);
  switch (fault.kind) {
    case PlantedKind::kWrongOp:
      call.op = call.op == OpKind::kAllGather ? OpKind::kAllToAll : OpKind::kAllGather;
      break;
    case PlantedKind::kWrongSize:
      call.count += 1;
      break;
    case PlantedKind::kWrongDType:
      call.dtype = DType::kI32;
      break;
    case PlantedKind::kWrongRoot:
      call.root = (call.root + 1) % kPlantedRanks;
      break;
    default:  // one too many: of a size that the programs do not use
      call.op = OpKind::kAllReduce;
      call.count = 3;
      break;
  }
  return call;
}

// SIGSTOP to this process; a helper ends it once the others have had their time.
void StopUntilKilled() {
  const pid_t self = getpid();
  if (fork() == 0) {
    absl::SleepFor(kPlantedDeadline + kGrace + absl::Milliseconds(500));
    kill(self, SIGKILL);
    _exit(0);
  }
  raise(SIGSTOP);
}

// What the victim does in place of going on to its call. `others`: ranks that have not ended.
void Misbehave(const PlantedFault& fault, const std::atomic<int>* others) {
  if (fault.kind == PlantedKind::kSlow) absl::SleepFor(kSlowness);
  if (fault.kind == PlantedKind::kKill && others == nullptr) raise(SIGKILL);
  if (fault.kind != PlantedKind::kStop) return;
  if (others == nullptr) StopUntilKilled();
  // A thread that hangs until all others have given up.
  while (others->load() > 0) absl::SleepFor(absl::Milliseconds(5));
}

Ending RunRank(const PlantedFault& fault, Communicator& comm, const std::atomic<int>* others) {
  const bool victim = comm.rank() == fault.victim;
  for (int index = 1; index <= kCalls; ++index) {
    LegalCall call = RightCall(fault, index);
    if (victim && static_cast<uint64_t>(index) == fault.at_call) {
      Misbehave(fault, others);
      if (Mismatched(fault.kind)) call = WrongCall(fault);
    }
    const absl::Time start = absl::Now();
    const absl::Status status = MakeCall(comm, call, fault.seed, index, kPlantedDeadline);
    if (!status.ok()) return {absl::Now() - start, status};
  }
  if (!victim || fault.kind != PlantedKind::kOneMoreAtTheEnd) return {};
  absl::SleepFor(absl::Milliseconds(100));
  return {absl::ZeroDuration(),
          comm.Barrier({kPlantedDeadline, CallSite{"program.cc", kCalls + 1}})};
}

std::shared_ptr<CallObserver> Recorder(const std::string& transport, const std::string& directory) {
  return std::make_shared<RecordingObserver>(
      RecordingOptions{.transport = transport, .directory = directory, .records = 64});
}

FaultPlan PlanOf(const PlantedFault& fault) {
  FaultPlan plan;
  if (fault.kind == PlantedKind::kLinkCut) {
    plan.CutLink(fault.victim, fault.partner, fault.at_call);
  }
  if (fault.kind == PlantedKind::kKill && fault.transport == PlantedTransport::kMem) {
    plan.Vanish(fault.victim, fault.at_call);
  }
  return plan;
}

struct Member {
  std::unique_ptr<Store> store;  // rank 0's serves the others while they connect
  std::unique_ptr<Communicator> comm;
};

// Groups with a cut link are connected by hand, to put the fault between.
absl::StatusOr<Member> Connect(const PlantedFault& fault, int rank, int port,
                               const std::string& directory) {
  const bool shm = fault.transport == PlantedTransport::kShm;
  const CommOptions options = LocalOptions(
      rank, kPlantedRanks, port, shm ? TransportKind::kShm : TransportKind::kTcp, kForming);
  const auto recorder = Recorder(shm ? "shm" : "tcp", directory);
  Member member;
  if (fault.kind != PlantedKind::kLinkCut) {
    ASSIGN_OR_RETURN(member.comm, Communicator::Create(options, nullptr, recorder));
    return member;
  }
  const absl::Time deadline = absl::Now() + kForming;
  ASSIGN_OR_RETURN(member.store, Store::Open(options, deadline));
  auto transport = shm ? ConnectShm(options, *member.store, deadline)
                       : ConnectTcp(options, *member.store, deadline);
  RETURN_IF_ERROR(transport.status());
  GroupOptions group;
  group.observer = recorder;
  member.comm = std::make_unique<Communicator>(
      std::make_unique<FaultyTransport>(*std::move(transport), PlanOf(fault).Of(rank)),
      std::move(group));
  return member;
}

std::vector<Ending> RunInProcesses(const PlantedFault& fault, const std::string& directory) {
  const int port = FreePort();
  const auto outcomes = RunProcesses(kPlantedRanks, [&](int rank) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto member = Connect(fault, rank, port, directory);
    if (!member.ok()) return absl::StrCat("cannot connect: ", member.status().ToString());
    return Encode(RunRank(fault, *member->comm, nullptr));
  });
  std::vector<Ending> endings;
  for (const RankOutcome& outcome : outcomes) endings.push_back(Decode(outcome.report));
  return endings;
}

std::vector<Ending> RunInThreads(const PlantedFault& fault, const std::string& directory) {
  auto ends = ConnectMemWithFaults(kPlantedRanks, PlanOf(fault));
  std::vector<Ending> endings(kPlantedRanks);
  std::atomic<int> others = kPlantedRanks - 1;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kPlantedRanks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      options.observer = Recorder("mem", directory);
      Communicator comm(std::move(ends[rank]), std::move(options));
      endings[rank] = RunRank(fault, comm, &others);
      if (rank != fault.victim) --others;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

// The ranks that may be named.
std::vector<int> Culprits(const PlantedFault& fault) {
  if (fault.kind == PlantedKind::kLinkCut) return {fault.victim, fault.partner};
  return {fault.victim};
}

bool Named(const std::vector<int>& named, const std::vector<int>& culprits) {
  return !named.empty() && std::all_of(named.begin(), named.end(), [&](int rank) {
    return std::find(culprits.begin(), culprits.end(), rank) != culprits.end();
  });
}

// Of a cut link both ends are to blame, and a rank that has passed the call may be the first to
// give up: it then names all that it misses in the next one, the ends among them, and their last.
bool NamesAnEnd(const std::vector<int>& named, const PlantedFault& fault) {
  const auto has = [&](int rank) {
    return std::find(named.begin(), named.end(), rank) != named.end();
  };
  return fault.kind == PlantedKind::kLinkCut && (has(fault.victim) || has(fault.partner));
}

std::string CheckSurvivor(const PlantedFault& fault, int rank, const Ending& ending) {
  const std::string text(ending.status.message());
  const std::string who =
      absl::StrCat("rank ", rank, " says after ", absl::FormatDuration(ending.waited), ": ",
                   ending.status.ToString(), "\n");
  if (fault.kind == PlantedKind::kOneMoreAtTheEnd) return ending.status.ok() ? "" : who;
  const std::string call =
      absl::StrCat(OpName(RightCall(fault, fault.at_call).op), " #", fault.at_call);
  const std::vector<int> named = BlameOf(ending.status).world_ranks;
  const bool right = !ending.status.ok() &&
                     (Named(named, Culprits(fault)) || NamesAnEnd(named, fault)) &&
                     (absl::StrContains(text, call + " ") || absl::EndsWith(text, call));
  if (!right) return absl::StrCat("want rank ", fault.victim, " and ", call, ", ", who);
  if (ending.waited > kPlantedDeadline + kGrace) return absl::StrCat("too late: ", who);
  return "";
}

std::string CheckDoctor(const PlantedFault& fault, const std::string& directory) {
  const absl::StatusOr<DumpDirectory> dumps = ReadDumpDirectory(directory);
  if (!dumps.ok()) return absl::StrCat("doctor: ", dumps.status().ToString(), "\n");
  const auto unknown = [](const FlightDump&) { return ProcessState::kUnknown; };
  const Finding verdict = Diagnose(MakeRunView(*dumps, unknown, MonotonicNanoseconds())).verdict;
  const uint64_t call = fault.kind == PlantedKind::kOneMoreAtTheEnd ? kCalls + 1 : fault.at_call;
  if (Named(verdict.world_ranks, Culprits(fault)) && verdict.sequence == call) return "";
  return absl::StrCat("want rank ", fault.victim, " at #", call, ", the doctor says (",
                      std::string(FindingKindName(verdict.kind)), "): ", verdict.text, "\n");
}

}  // namespace

PlantedFault FaultOf(uint64_t index) {
  const uint64_t key = RngKey(index, "planted fault");
  const auto pick = [&](uint64_t stream, uint64_t end) { return RandomBits(key, stream, 0) % end; };
  PlantedFault fault;
  fault.kind = static_cast<PlantedKind>(index % kPlantedKinds);
  fault.transport = static_cast<PlantedTransport>(index / kPlantedKinds % 3);
  fault.seed = index + 1;
  fault.victim = static_cast<int>(pick(0, kPlantedRanks));
  fault.partner = static_cast<int>((fault.victim + 1 + pick(1, kPlantedRanks - 1)) % kPlantedRanks);
  fault.at_call = 2 + pick(2, kCalls - 2);
  return fault;
}

std::string ToString(const PlantedFault& fault) {
  constexpr const char* kKinds[kPlantedKinds] = {"kill",
                                                 "stop",
                                                 "slowness",
                                                 "wrong op",
                                                 "wrong size",
                                                 "wrong dtype",
                                                 "wrong root",
                                                 "one call too many",
                                                 "one more call at the end",
                                                 "cut link"};
  constexpr const char* kTransports[] = {"mem", "shm", "tcp"};
  return absl::StrCat(
      kKinds[static_cast<int>(fault.kind)], " of rank ", fault.victim,
      fault.kind == PlantedKind::kLinkCut ? absl::StrCat(" and ", fault.partner) : "", " at call ",
      fault.at_call, " over ", kTransports[static_cast<int>(fault.transport)], " (seed ",
      fault.seed, ")");
}

std::string RunPlantedFault(const PlantedFault& fault, const std::string& directory) {
  const std::vector<Ending> endings = fault.transport == PlantedTransport::kMem
                                          ? RunInThreads(fault, directory)
                                          : RunInProcesses(fault, directory);
  std::string wrong;
  for (int rank = 0; rank < kPlantedRanks; ++rank) {
    if (rank != fault.victim) wrong += CheckSurvivor(fault, rank, endings[rank]);
  }
  wrong += CheckDoctor(fault, directory);
  return wrong.empty() ? "" : absl::StrCat(ToString(fault), ":\n", wrong);
}

}  // namespace plinth::comm::testing
