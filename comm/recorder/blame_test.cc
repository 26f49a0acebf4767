#include "plinth/comm/recorder/blame.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/verdict.h"

namespace plinth::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What Verdict says is understood, with and without a group's names.
TEST(Blame, IsTheInverseOfVerdict) {
  const struct {
    PeerFailure::Kind kind;
    FailureKind want;
  } kKinds[] = {{PeerFailure::Kind::kLate, FailureKind::kLate},
                {PeerFailure::Kind::kGone, FailureKind::kGone},
                {PeerFailure::Kind::kLeft, FailureKind::kLeft}};
  GroupInfo group;
  group.name = "dp";
  group.world_ranks = {4, 15, 6};
  Fingerprint print;
  print.sequence = 17;
  for (const auto& kind : kKinds) {
    for (const bool arriving : {false, true}) {
      const absl::Status one =
          Verdict({kind.kind, {1}, ""}, print, arriving, absl::Seconds(5), &group);
      EXPECT_EQ(BlameOf(one).kind, kind.want);
      EXPECT_THAT(BlameOf(one).world_ranks, ElementsAre(15));
      const absl::Status two = Verdict({kind.kind, {0, 2}, ""}, print, arriving, absl::Seconds(5));
      EXPECT_THAT(BlameOf(two).world_ranks, ElementsAre(0, 2));
      const absl::Status passed_on =
          Verdict({PeerFailure::Kind::kAborted, {0}, std::string(one.message())}, print, arriving,
                  absl::Seconds(5), &group);
      EXPECT_EQ(BlameOf(passed_on).kind, FailureKind::kAborted);
      EXPECT_THAT(BlameOf(passed_on).world_ranks, ElementsAre(15));
    }
  }
}

TEST(Blame, OfAMismatchAndOfOtherErrors) {
  const absl::Status mismatch = absl::FailedPreconditionError(
      "rank 2 called barrier #1, but the other 3 ranks called all_reduce #1 (f32 x 8)");
  EXPECT_EQ(BlameOf(mismatch).kind, FailureKind::kMismatch);
  EXPECT_THAT(BlameOf(mismatch).world_ranks, ElementsAre(2));
  EXPECT_EQ(BlameOf(absl::InternalError("rank 2")).kind, FailureKind::kOther);
  for (const char* text : {"", "rank", "rank x", "ranks 1, x", "rank 99999999999999", ": "}) {
    EXPECT_LE(BlameOf(absl::AbortedError(text)).world_ranks.size(), 1u) << text;
    EXPECT_LE(BlameOf(absl::UnavailableError(text)).world_ranks.size(), 1u) << text;
  }
  EXPECT_THAT(BlameOf(absl::UnavailableError("rank x")).world_ranks, IsEmpty());
}

}  // namespace
}  // namespace plinth::comm
