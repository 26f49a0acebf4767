#include "plinth/comm/transport/nccl/testing/nccl_ranks.h"

#include <dlfcn.h>

#include <memory>
#include <span>
#include <thread>

#include "absl/time/clock.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

FakeNcclCounts CountsOfTheLibrary() {
  void* handle = dlopen(kFakeNccl, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle != nullptr) << dlerror();
  const auto function = reinterpret_cast<FakeNcclCountsFunction>(dlsym(handle, "fake_nccl_counts"));
  CHECK(function != nullptr) << dlerror();
  FakeNcclCounts counts;
  function(&counts);
  return counts;
}

}  // namespace

NcclTest::NcclTest() : before_(CountsOfTheLibrary()) {}

void NcclTest::TearDown() { EXPECT_EQ(Counts().alive(), 0); }

FakeNcclCounts NcclTest::Counts() const {
  const FakeNcclCounts now = CountsOfTheLibrary();
  return {.begun = now.begun - before_.begun,
          .aborted = now.aborted - before_.aborted,
          .destroyed = now.destroyed - before_.destroyed};
}

void NcclTest::ExpectAllWereAborted() const {
  const FakeNcclCounts counts = Counts();
  EXPECT_GE(counts.begun, 1);
  EXPECT_EQ(counts.aborted, counts.begun);
  EXPECT_EQ(counts.destroyed, 0);
}

absl::Status Rank::Call(CollectiveCall call) {
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
  if (!status.ok() && !absl::IsUnimplemented(status)) CHECK(backend.Run(call, deadline) == status);
  return status;
}

std::vector<std::string> RunRanks(const NcclRanks& ranks,
                                  const std::function<std::string(Rank&)>& body) {
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(ranks.size);
  std::vector<std::string> reports(ranks.size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.size; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own;
      own.rank = rank;
      own.size = ranks.size;
      own.timeout = ranks.timeout;
      own.device = ranks.one_gpu && rank == 1 ? 0 : rank;
      const auto backend = ConnectNccl(own, *ends[rank], absl::Now() + ranks.timeout, ranks.files);
      if (!backend.ok()) {
        reports[rank] = backend.status().ToString();
        return;
      }
      GroupInfo group{.rank = rank};
      for (int each = 0; each < ranks.size; ++each) group.world_ranks.push_back(each);
      Rank self{*ends[rank], **backend, ranks.timeout, group};
      reports[rank] = body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

Bytes InputOf(int rank, int64_t bytes) {
  Bytes input(bytes);
  uint32_t state = 17 + 101 * rank;
  for (uint8_t& byte : input) byte = (state = state * 1664525 + 1013904223) >> 24;
  return input;
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

}  // namespace plinth::comm::testing
