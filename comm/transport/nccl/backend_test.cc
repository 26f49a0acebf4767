// The NCCL back-end against a library that has NCCL's interface and can be told to fail.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/nccl/connect.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFake[] = "comm/transport/nccl/libfake_nccl.so";
constexpr absl::Duration kLong = absl::Seconds(20);
constexpr DType kReducible[] = {DType::kF64,    DType::kF32,    DType::kBf16, DType::kF16,
                                DType::kF8E4M3, DType::kF8E5M2, DType::kI8,   DType::kU8,
                                DType::kI32,    DType::kU32,    DType::kI64,  DType::kU64};

// Sets a variable that the fake library looks at, for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

// How often a function of the library was called so far.
int Counted(const char* counter) {
  void* handle = dlopen(kFake, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle != nullptr) << dlerror();
  return reinterpret_cast<int (*)()>(dlsym(handle, counter))();
}

// One rank of a group, with what the layers above do for it.
struct Rank {
  Transport& transport;
  Backend& backend;
  absl::Duration timeout;
  GroupInfo group;
  uint64_t sequence = 0;

  absl::Status Call(CollectiveCall call) {
    call.print.sequence = ++sequence;
    call.timeout = timeout;
    call.group = &group;
    const absl::Time deadline = absl::Now() + timeout;
    std::vector<std::span<const std::byte>> notes;
    const auto bytes = std::as_bytes(std::span(&call.print, 1));
    if (const auto failure = transport.Announce(bytes, notes, deadline)) {
      return Verdict(*failure, call.print, /*arriving=*/true, timeout, &group);
    }
    const absl::Status status = backend.Run(call, deadline);
    // The first error is that of all later calls; one that concerns only this call is none.
    if (!status.ok() && !absl::IsUnimplemented(status))
      CHECK(backend.Run(call, deadline) == status);
    return status;
  }
};

struct Options {
  int size = 4;
  absl::Duration timeout = kLong;
  NcclFiles files = {kFake, kFake};
  bool one_gpu = false;  // rank 1 takes rank 0's
};

// Forms a group of threads and gives what each rank's `body` reports, or why there is no group.
std::vector<std::string> RunRanks(const Options& options,
                                  const std::function<std::string(Rank&)>& body) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(options.size);
  std::vector<std::string> reports(options.size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.size; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own;
      own.rank = rank;
      own.size = options.size;
      own.timeout = options.timeout;
      own.device = options.one_gpu && rank == 1 ? 0 : rank;
      const auto backend =
          ConnectNccl(own, *ends[rank], absl::Now() + options.timeout, options.files);
      if (!backend.ok()) {
        reports[rank] = backend.status().ToString();
        return;
      }
      GroupInfo group{.rank = rank};
      for (int each = 0; each < options.size; ++each) group.world_ranks.push_back(each);
      Rank self{*ends[rank], **backend, options.timeout, group};
      reports[rank] = body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

using Bytes = std::vector<uint8_t>;

// What rank `rank` passes to an operation.
Bytes InputOf(int rank, int64_t bytes) {
  Bytes input(bytes);
  uint32_t state = 17 + 101 * rank;
  for (uint8_t& byte : input) byte = (state = state * 1664525 + 1013904223) >> 24;
  return input;
}

Bytes ReducedInputs(ReduceOp op, DType dtype, int size, int64_t count) {
  std::vector<Bytes> inputs;
  std::vector<const void*> sources;
  for (int rank = 0; rank < size; ++rank) {
    inputs.push_back(InputOf(rank, count * DTypeSize(dtype)));
    sources.push_back(inputs.back().data());
  }
  Bytes result(count * DTypeSize(dtype));
  if (count > 0) Reduce(op, dtype, sources, count, result.data());
  return result;
}

Bytes Part(const Bytes& whole, int64_t begin, int64_t bytes) {
  return Bytes(whole.begin() + begin, whole.begin() + begin + bytes);
}

CollectiveCall MakeCall(OpKind op, ReduceOp reduce, DType dtype, int64_t count, int root, Bytes& in,
                        Bytes& out) {
  const int64_t width = DTypeSize(dtype);
  CollectiveCall call;
  call.print = {.count = count, .root = root, .op = op, .reduce = reduce, .dtype = dtype};
  call.in = {in.data(), static_cast<int64_t>(in.size()) / width, dtype};
  call.out = {out.data(), static_cast<int64_t>(out.size()) / width, dtype};
  return call;
}

std::string CheckReductions(Rank& rank, ReduceOp op, DType dtype, int64_t count) {
  const int size = rank.transport.size();
  const int self = rank.transport.rank();
  const int64_t bytes = count * DTypeSize(dtype);
  const Bytes sum = ReducedInputs(op, dtype, size, count);
  const Bytes sums = ReducedInputs(op, dtype, size, count * size);
  const auto failed = [&](const char* what) {
    return absl::StrCat(what, " of ", count, " ", std::string(DTypeName(dtype)));
  };

  Bytes in = InputOf(self, bytes);
  if (!rank.Call(MakeCall(OpKind::kAllReduce, op, dtype, count, -1, in, in)).ok() || in != sum) {
    return failed("all_reduce");
  }
  Bytes out(bytes);
  in = InputOf(self, bytes * size);
  if (!rank.Call(MakeCall(OpKind::kReduceScatter, op, dtype, count, -1, in, out)).ok() ||
      out != Part(sums, self * bytes, bytes)) {
    return failed("reduce_scatter");
  }
  for (int root = 0; root < size; ++root) {
    in = InputOf(self, bytes);
    out.assign(self == root ? bytes : 0, 0);
    if (!rank.Call(MakeCall(OpKind::kReduce, op, dtype, count, root, in, out)).ok() ||
        (self == root && out != sum)) {
      return failed("reduce");
    }
  }
  // Rank r's share is r * count elements: none for rank 0.
  const int64_t before = count * self * (self - 1) / 2;
  const int64_t all = count * size * (size - 1) / 2;
  in = InputOf(self, all * DTypeSize(dtype));
  out.assign(bytes * self, 0);
  CollectiveCall call = MakeCall(OpKind::kReduceScatterV, op, dtype, all, -1, in, out);
  for (int each = 0; each < size; ++each) call.send_counts.push_back(count * each);
  if (!rank.Call(call).ok() ||
      out != Part(ReducedInputs(op, dtype, size, all), before * DTypeSize(dtype), out.size())) {
    return failed("reduce_scatter_v");
  }
  return "";
}

std::string CheckMoves(Rank& rank, DType dtype, int64_t count) {
  const int size = rank.transport.size();
  const int self = rank.transport.rank();
  const int64_t width = DTypeSize(dtype);
  const int64_t bytes = count * width;
  constexpr ReduceOp kNone = ReduceOp::kNone;
  Bytes all;
  for (int each = 0; each < size; ++each) {
    const Bytes theirs = InputOf(each, bytes);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  Bytes in = InputOf(self, bytes);
  Bytes out(bytes * size);
  if (!rank.Call(MakeCall(OpKind::kAllGather, kNone, dtype, count, -1, in, out)).ok() ||
      out != all) {
    return "all_gather";
  }
  for (int root = 0; root < size; ++root) {
    in = InputOf(self, bytes);
    if (!rank.Call(MakeCall(OpKind::kBroadcast, kNone, dtype, count, root, in, in)).ok() ||
        in != InputOf(root, bytes)) {
      return "broadcast";
    }
    in = InputOf(self, bytes);
    out.assign(self == root ? bytes * size : 0, 0);
    if (!rank.Call(MakeCall(OpKind::kGather, kNone, dtype, count, root, in, out)).ok() ||
        (self == root && out != all)) {
      return "gather";
    }
    in = self == root ? all : Bytes();
    out.assign(bytes, 0);
    if (!rank.Call(MakeCall(OpKind::kScatter, kNone, dtype, count, root, in, out)).ok() ||
        out != InputOf(self, bytes)) {
      return "scatter";
    }
  }
  in = InputOf(self, bytes * size);
  out.assign(bytes * size, 0);
  if (!rank.Call(MakeCall(OpKind::kAllToAll, kNone, dtype, count, -1, in, out)).ok()) {
    return "all_to_all fails";
  }
  for (int from = 0; from < size; ++from) {
    if (Part(out, from * bytes, bytes) != Part(InputOf(from, bytes * size), self * bytes, bytes)) {
      return "all_to_all";
    }
  }
  return "";
}

// Rank r has r shares for all_gather_v; rank i sends (i + 2 j) % 3 shares to rank j.
std::string CheckVMoves(Rank& rank, DType dtype, int64_t count) {
  const int size = rank.transport.size();
  const int self = rank.transport.rank();
  const int64_t bytes = count * DTypeSize(dtype);
  Bytes in = InputOf(self, bytes * self);
  Bytes out(bytes * size * (size - 1) / 2);
  CollectiveCall call = MakeCall(OpKind::kAllGatherV, ReduceOp::kNone, dtype, count, -1, in, out);
  for (int each = 0; each < size; ++each) call.send_counts.push_back(count * each);
  if (!rank.Call(call).ok()) return "all_gather_v fails";
  for (int64_t each = 0, begin = 0; each < size; begin += each++ * bytes) {
    const int from = static_cast<int>(each);
    if (Part(out, begin, each * bytes) != InputOf(from, each * bytes)) return "all_gather_v";
  }

  const auto shares = [](int from, int to) { return (from + 2 * to) % 3; };
  int64_t sent = 0;
  int64_t received = 0;
  for (int each = 0; each < size; ++each) {
    sent += shares(self, each) * bytes;
    received += shares(each, self) * bytes;
  }
  in = InputOf(self, sent);
  out.assign(received, 0);
  call = MakeCall(OpKind::kAllToAllV, ReduceOp::kNone, dtype, count, -1, in, out);
  for (int each = 0; each < size; ++each) {
    call.send_counts.push_back(shares(self, each) * count);
    call.receive_counts.push_back(shares(each, self) * count);
  }
  if (!rank.Call(call).ok()) return "all_to_all_v fails";
  int64_t at = 0;
  for (int from = 0; from < size; ++from) {
    int64_t begin = 0;
    int64_t whole = 0;
    for (int to = 0; to < size; ++to) {
      if (to < self) begin += shares(from, to) * bytes;
      whole += shares(from, to) * bytes;
    }
    const int64_t got = shares(from, self) * bytes;
    if (Part(out, at, got) != Part(InputOf(from, whole), begin, got)) return "all_to_all_v";
    at += got;
  }
  return "";
}

TEST(NcclBackend, ReducesEveryTypeWithEveryOperation) {
  for (int size = 1; size <= 4; ++size) {
    const auto reports = RunRanks({.size = size}, [](Rank& rank) -> std::string {
      for (const DType dtype : kReducible) {
        for (const ReduceOp op :
             {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProd}) {
          if (!CanReduce(op, dtype)) continue;
          for (const int64_t count : {0, 1, 7, 64}) {
            const std::string failure = CheckReductions(rank, op, dtype, count);
            if (!failure.empty()) return failure;
          }
        }
      }
      return "";
    });
    EXPECT_THAT(reports, Each("")) << size << " ranks";
  }
}

TEST(NcclBackend, MovesEveryType) {
  for (int size = 1; size <= 4; ++size) {
    const auto reports = RunRanks({.size = size}, [](Rank& rank) -> std::string {
      for (const DType dtype : {DType::kF32, DType::kBool, DType::kI16, DType::kF8E4M3}) {
        for (const int64_t count : {0, 1, 7, 1000}) {
          std::string failure = CheckMoves(rank, dtype, count);
          if (failure.empty()) failure = CheckVMoves(rank, dtype, count);
          if (!failure.empty()) return absl::StrCat(failure, " of ", count);
        }
      }
      return "";
    });
    EXPECT_THAT(reports, Each("")) << size << " ranks";
  }
}

TEST(NcclBackend, SendsBetweenTwoRanks) {
  const auto reports = RunRanks({.size = 2}, [](Rank& rank) -> std::string {
    const bool sends = rank.transport.rank() == 0;
    Bytes data = sends ? InputOf(0, 100) : Bytes(100);
    CollectiveCall call = MakeCall(sends ? OpKind::kSend : OpKind::kReceive, ReduceOp::kNone,
                                   DType::kU8, 100, sends ? 1 : 0, data, data);
    const absl::Status status = rank.Call(call);
    if (!status.ok()) return status.ToString();
    return data == InputOf(0, 100) ? "" : "other data";
  });
  EXPECT_THAT(reports, Each(""));
}

// Each rank sends twice to the next one and once to itself, at once.
TEST(NcclBackend, RunsManySendsAndReceivesAtOnce) {
  const auto reports = RunRanks({.size = 3}, [](Rank& rank) -> std::string {
    const int self = rank.transport.rank();
    const int next = (self + 1) % 3;
    const int before = (self + 2) % 3;
    Bytes sent = InputOf(self, 60);
    Bytes received(60);
    std::vector<CollectiveCall> calls;
    for (const auto& [to, from, begin, count] :
         {std::tuple{next, before, 0, 30}, {next, before, 30, 20}, {self, self, 50, 10}}) {
      for (const bool sends : {true, false}) {
        CollectiveCall call;
        call.print = {.count = count, .root = sends ? to : from, .dtype = DType::kU8};
        call.print.op = sends ? OpKind::kSend : OpKind::kReceive;
        if (sends) call.in = {sent.data() + begin, count, DType::kU8};
        if (!sends) call.out = {received.data() + begin, count, DType::kU8};
        calls.push_back(call);
      }
    }
    const absl::Status status = rank.backend.RunPairs(calls, absl::Now() + kLong);
    if (!status.ok()) return status.ToString();
    Bytes want = InputOf(before, 60);
    std::copy(sent.begin() + 50, sent.end(), want.begin() + 50);
    return received == want ? "" : "other data";
  });
  EXPECT_THAT(reports, Each(""));
}

// Below a communicator: the notes by which its ranks meet must not read the GPU's buffers, and
// sends and receives go through NCCL as well.
TEST(NcclBackend, CarriesACommunicator) {
  for (const int size : {1, 3}) {
    std::vector<std::unique_ptr<Transport>> ends = ConnectMem(size);
    std::vector<std::string> reports(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        CommOptions own;
        own.rank = own.device = rank;
        own.size = size;
        auto nccl = ConnectNccl(own, *ends[rank], absl::Now() + kLong, {kFake, kFake});
        if (!nccl.ok()) {
          reports[rank] = nccl.status().ToString();
          return;
        }
        GroupOptions options;
        options.timeout = kLong;
        options.backends.push_back(*std::move(nccl));
        Communicator comm(std::move(ends[rank]), std::move(options));
        constexpr int64_t kCounts[] = {0, 1, 7, 500};
        reports[rank] = testing::CheckAllCollectives(comm, kCounts);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(reports, Each("")) << size << " ranks";
  }
}

TEST(NcclBackend, EndsItsCommunicatorsInOrder) {
  const int destroys = Counted("fake_nccl_destroys");
  const int aborts = Counted("fake_nccl_aborts");
  RunRanks({.size = 3}, [](Rank&) { return ""; });
  EXPECT_EQ(Counted("fake_nccl_destroys"), destroys + 3);
  EXPECT_EQ(Counted("fake_nccl_aborts"), aborts);
}

// Forms no group: what all ranks say.
std::vector<std::string> Refusals(const Options& options) {
  return RunRanks(options, [](Rank&) { return "formed"; });
}

TEST(NcclConnect, AMissingLibraryNamesTheRankAndThePackage) {
  EXPECT_THAT(Refusals({.size = 2, .files = {"libno-such-nccl.so.2", kFake}}),
              Each(AllOf(StartsWith("UNAVAILABLE: rank 0: nccl: cannot load libno-such-nccl.so.2"),
                         HasSubstr("install NVIDIA's NCCL"))));
  EXPECT_THAT(Refusals({.size = 2, .files = {kFake, "libno-such-cuda.so.1"}}),
              Each(StartsWith("UNAVAILABLE: rank 0: nccl: no NVIDIA driver: cannot load")));
  EXPECT_THAT(Refusals({.size = 2, .files = {"libc.so.6", kFake}}),
              Each("UNAVAILABLE: rank 0: nccl: libc.so.6 tells no version of NCCL"));
}

TEST(NcclConnect, AnOldLibraryIsRefusedWithBothVersions) {
  const ScopedEnv version("FAKE_NCCL_VERSION", "21304");
  EXPECT_THAT(Refusals({.size = 2}),
              Each(AllOf(StartsWith("FAILED_PRECONDITION: rank 0: nccl: "),
                         HasSubstr("is version 2.13.4, want 2.14.0 or later"))));
  const ScopedEnv older("FAKE_NCCL_VERSION", "2708");
  EXPECT_THAT(Refusals({.size = 2}), Each(HasSubstr("is version 2.7.8, want 2.14.0 or later")));
}

TEST(NcclConnect, AGpuThatIsNotThereOrTakenIsRefused) {
  EXPECT_THAT(Refusals({.size = 9}),
              Each("FAILED_PRECONDITION: rank 8: nccl: bound to GPU 8, of 8 that this process "
                   "sees"));
  EXPECT_THAT(
      Refusals({.size = 3, .one_gpu = true}),
      Each(AllOf(StartsWith("FAILED_PRECONDITION: nccl: ranks 0 and 1 are bound to one GPU"),
                 HasSubstr("0000:3b:00.0"))));
  const ScopedEnv absent("FAKE_CUDA_ABSENT", "1");
  EXPECT_THAT(Refusals({.size = 2}), Each("UNAVAILABLE: rank 0: nccl: the driver cannot start: "
                                          "CUDA_ERROR_NO_DEVICE"));
}

TEST(NcclConnect, AGroupNeedsADevice) {
  const auto ends = ConnectMem(1);
  const auto backend =
      ConnectNccl(CommOptions(), *ends[0], absl::Now() + kLong, NcclFiles{kFake, kFake});
  EXPECT_THAT(backend, ::plinth::testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                                   HasSubstr("needs CommOptions::device")));
}

TEST(NcclConnect, AnInitErrorNamesTheRankOnAll) {
  const ScopedEnv error("FAKE_NCCL_INIT_ERROR", "2");
  const int aborts = Counted("fake_nccl_aborts");
  const absl::Time start = absl::Now();
  const auto reports = Refusals({.size = 4});
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));  // long before the deadline
  EXPECT_EQ(reports[2],
            "UNAVAILABLE: rank 2 cannot connect NCCL: unhandled system error (said the fake)");
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(
        reports[rank],
        "ABORTED: aborted by rank 2: rank 2 cannot connect NCCL: unhandled system error (said "
        "the fake)");
  }
  // A rank that hears of the failure before it has begun has nothing to abort.
  EXPECT_GE(Counted("fake_nccl_aborts"), aborts + 1);
  EXPECT_LE(Counted("fake_nccl_aborts"), aborts + 4);
}

TEST(NcclConnect, AnIdThatCannotBeMadeFailsAll) {
  const ScopedEnv error("FAKE_NCCL_ID_ERROR", "1");
  EXPECT_THAT(Refusals({.size = 2}),
              Each("UNAVAILABLE: rank 0: nccl: cannot make an id: unhandled system error (said the "
                   "fake)"));
}

TEST(NcclConnect, ConnectingEndsAtTheDeadline) {
  const ScopedEnv hang("FAKE_NCCL_INIT_HANG", "1");
  const absl::Time start = absl::Now();
  EXPECT_THAT(Refusals({.size = 3, .timeout = absl::Milliseconds(200)}),
              Each(HasSubstr("NCCL did not connect within 200ms")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
}

// Makes five calls and reports the first error.
std::string CallUntilError(Rank& rank) {
  for (int call = 1; call <= 5; ++call) {
    Bytes data(4000);
    const absl::Status status =
        rank.Call(MakeCall(OpKind::kAllReduce, ReduceOp::kSum, DType::kF32, 1000, -1, data, data));
    if (!status.ok()) return status.ToString();
  }
  return "no error";
}

TEST(NcclBackend, AnAsynchronousErrorNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_NCCL_ASYNC_ERROR", "2:3");
  const int aborts = Counted("fake_nccl_aborts");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 4}, CallUntilError);
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  const std::string verdict =
      "rank 2 did not finish all_reduce #3 (f32 x 1000): NCCL: remote process exited or there was "
      "a network error (said the fake)";
  EXPECT_EQ(reports[2], "UNAVAILABLE: " + verdict);
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(reports[rank], "ABORTED: aborted by rank 2: " + verdict);
  }
  EXPECT_EQ(Counted("fake_nccl_aborts"), aborts + 4);
}

TEST(NcclBackend, ACallThatIsRefusedNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_NCCL_QUEUE_ERROR", "1:2");
  const auto reports = RunRanks({.size = 3}, CallUntilError);
  EXPECT_EQ(reports[1],
            "UNAVAILABLE: rank 1 did not finish all_reduce #2 (f32 x 1000): NCCL: invalid usage "
            "(said the fake)");
  EXPECT_THAT(reports[0], StartsWith("ABORTED: aborted by rank 1: rank 1 did not finish"));
}

TEST(NcclBackend, AnErrorOfTheGpuNamesTheRankAndTheCall) {
  const ScopedEnv error("FAKE_CUDA_ERROR", "0:4");
  const auto reports = RunRanks({.size = 3}, CallUntilError);
  EXPECT_EQ(reports[0],
            "UNAVAILABLE: rank 0 did not finish all_reduce #4 (f32 x 1000): NCCL: nccl: the driver "
            "cannot run the operation: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_THAT(reports[2], StartsWith("ABORTED: aborted by rank 0: rank 0 did not finish"));
}

TEST(NcclBackend, AHangEndsAtTheDeadlineWithAnAbort) {
  const ScopedEnv hang("FAKE_NCCL_HANG", "1:2");
  const int aborts = Counted("fake_nccl_aborts");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 3, .timeout = absl::Milliseconds(300)}, CallUntilError);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(250));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_THAT(reports,
              Each(HasSubstr("did not finish all_reduce #2 (f32 x 1000) within 300ms: all ranks "
                             "arrived, and NCCL reports no error")));
  EXPECT_THAT(reports, Each(AnyOf(StartsWith("DEADLINE_EXCEEDED: rank"),
                                  StartsWith("ABORTED: aborted by rank"))));
  EXPECT_EQ(Counted("fake_nccl_aborts"), aborts + 3);
}

TEST(NcclBackend, AbortEndsACallThatHangs) {
  const ScopedEnv hang("FAKE_NCCL_HANG", "0:1");
  const absl::Time start = absl::Now();
  const auto reports = RunRanks({.size = 2}, [](Rank& rank) {
    std::thread other([&] {
      if (rank.transport.rank() != 0) return;
      absl::SleepFor(absl::Milliseconds(50));
      rank.transport.Abort("enough");
      rank.backend.Abort();
    });
    const std::string report = CallUntilError(rank);
    other.join();
    return report;
  });
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_THAT(reports[0], StartsWith("ABORTED: all_reduce #1 (f32 x 1000): aborted"));
  EXPECT_EQ(reports[1], "ABORTED: aborted by rank 0: enough");
}

TEST(NcclBackend, ARankThatLeavesIsNamedAtTheDeadline) {
  const auto reports =
      RunRanks({.size = 2, .timeout = absl::Milliseconds(200)}, [](Rank& rank) -> std::string {
        Bytes data(4);
        CollectiveCall call =
            MakeCall(OpKind::kAllReduce, ReduceOp::kSum, DType::kF32, 1, -1, data, data);
        if (rank.transport.rank() == 1) {
          // Meets, and goes without its part.
          std::vector<std::span<const std::byte>> notes;
          rank.transport.Announce({}, notes, absl::Now() + kLong);
          return "";
        }
        return rank.Call(call).ToString();
      });
  EXPECT_THAT(reports[0], HasSubstr("did not finish all_reduce #1 (f32 x 1) within 200ms"));
}

TEST(NcclBackend, F8NeedsALibraryThatReducesIt) {
  const ScopedEnv version("FAKE_NCCL_VERSION", "22105");
  const auto reports = RunRanks({.size = 2}, [](Rank& rank) -> std::string {
    Bytes data(8);
    const auto call = [&](DType dtype) {
      return rank.Call(MakeCall(OpKind::kAllReduce, ReduceOp::kSum, dtype, 8 / DTypeSize(dtype), -1,
                                data, data));
    };
    const absl::Status status = call(DType::kF8E4M3);
    // Nothing was sent, so the group goes on.
    return call(DType::kF32).ok() ? status.ToString() : "broken";
  });
  EXPECT_THAT(reports,
              Each("UNIMPLEMENTED: all_reduce #1 (f8e4m3 x 8): NCCL 2.21.5 does not reduce "
                   "f8e4m3, 2.24.0 reduces f8"));
}

}  // namespace
}  // namespace plinth::comm
