#include "plinth/comm/bench/launch/launch.h"

#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/net/socket.h"
#include "plinth/comm/rendezvous/options.h"
#include "plinth/comm/store/store.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

EnvironmentLookup Only(const char* name, const char* value) {
  return [=](const char* asked) { return std::strcmp(asked, name) == 0 ? value : nullptr; };
}

TEST(Launch, RefusesToBeOneRankOfManyWithoutTheOthers) {
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    EXPECT_THAT(CheckPromisedRanks(Only(name, "4"), 1),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(std::string(name) + "=4 promises 4 ranks, but this process "
                                                       "sees 1")));
    EXPECT_OK(CheckPromisedRanks(Only(name, "4"), 4));
    // A launcher inside another: one task of the outer started several ranks.
    EXPECT_OK(CheckPromisedRanks(Only(name, "1"), 8));
  }
  EXPECT_OK(CheckPromisedRanks(Only("SLURM_NTASKS", "many"), 1));
}

absl::Status Spawn(const std::function<absl::Status(const CommOptions&)>& body) {
  CommOptions base;
  base.timeout = absl::Seconds(1);
  return SpawnRanks(3, base, body);
}

TEST(Launch, RanksKnowTheirPlace) {
  EXPECT_OK(Spawn([](const CommOptions& o) {
    const bool placed = o.size == 3 && o.local_size == 3 && o.local_rank == o.rank;
    return placed ? absl::OkStatus() : absl::InternalError("misplaced");
  }));
}

TEST(Launch, SaysOnceWhatAllRanksSay) {
  EXPECT_THAT(Spawn([](const CommOptions&) { return absl::InvalidArgumentError("no\nsuch ring"); }),
              StatusIs(absl::StatusCode::kInvalidArgument, "no\\nsuch ring"));
  // What another rank repeats is told by the one that found it, whichever comes first.
  EXPECT_THAT(
      Spawn([](const CommOptions& o) {
        if (o.rank == 2) absl::SleepFor(absl::Milliseconds(100));
        return absl::AbortedError(o.rank == 2 ? "disk full" : "aborted by rank 2: disk full");
      }),
      StatusIs(absl::StatusCode::kAborted, "disk full"));
}

TEST(Launch, NamesTheRankThatASignalEnded) {
  EXPECT_THAT(Spawn([](const CommOptions& o) {
                if (o.rank == 2) raise(SIGKILL);
                return o.rank == 1 ? absl::UnavailableError("rank 2 is gone") : absl::OkStatus();
              }),
              StatusIs(absl::StatusCode::kAborted,
                       "rank 2 was ended by signal 9 (Killed); rank 2 is gone"));
}

TEST(Launch, EndsRanksThatWaitForOneThatFailed) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(Spawn([](const CommOptions& o) {
                if (o.rank != 1) absl::SleepFor(absl::Seconds(60));
                return absl::InternalError("broken");
              }),
              StatusIs(absl::StatusCode::kInternal, "broken"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(Launch, EndsRanksThatStayLongAfterTheFirst) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(
      Spawn([](const CommOptions& o) {
        if (o.rank == 1) absl::SleepFor(absl::Seconds(60));
        return absl::OkStatus();
      }),
      StatusIs(absl::StatusCode::kDeadlineExceeded, "rank 1 had not ended 1s after rank 0"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(Launch, HoldsThePortAtWhichRanksMeet) {
  // Nobody can take the port before rank 0 serves it, and ranks find it served in the end.
  EXPECT_OK(Spawn([](const CommOptions& o) -> absl::Status {
    if (o.rank == 1 && !absl::IsAlreadyExists(Listen(o.store_port).status())) {
      return absl::InternalError(absl::StrCat("port ", o.store_port, " is free"));
    }
    if (o.rank == 0) absl::SleepFor(absl::Milliseconds(300));
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::Open(o, deadline));
    RETURN_IF_ERROR(store->Set(absl::StrCat(o.rank), "here", deadline));
    for (int rank = 0; rank < o.size; ++rank) {
      RETURN_IF_ERROR(store->Wait(absl::StrCat(rank), deadline).status());
    }
    if (o.rank == 0) absl::SleepFor(absl::Milliseconds(500));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace plinth::comm
