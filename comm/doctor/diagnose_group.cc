// What is wrong in one group.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plinth/comm/doctor/diagnose.h"
#include "plinth/comm/doctor/mismatch.h"

namespace plinth::comm {
namespace {

constexpr double kNanosecond = 1e-9;

std::string Seconds(int64_t ns) {
  return absl::StrFormat("%.1f s", kNanosecond * static_cast<double>(std::max<int64_t>(0, ns)));
}

// One group under the lens: what holds in it, worked out once.
class GroupCase {
 public:
  explicit GroupCase(const GroupView& group) : group_(group) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const RankView& view = group_.ranks[rank];
      if (view.dump == nullptr) continue;
      if (view.in_call() && !IsCollective(view.last()->print.op)) messages_.push_back(rank);
      if (view.in_call() && IsCollective(view.last()->print.op)) {
        waiting_.push_back(rank);
        stuck_at_ = stuck_at_ == 0 ? view.last_started() : std::min(stuck_at_, view.last_started());
      }
      if (const auto& failure = view.dump->failure) failures_.push_back({rank, &*failure});
    }
    for (int rank = 0; rank < group_.size(); ++rank) {
      const RankView& view = group_.ranks[rank];
      if (view.dump != nullptr && stuck_at_ > 0 && view.last_started() < stuck_at_) {
        absent_.push_back(rank);
      }
    }
  }

  Finding Find() const {
    std::optional<Finding> finding = FindMismatch(group_);
    if (!finding) finding = ProcessEnded();
    if (!finding) finding = Stopped();
    if (!finding) finding = Message();
    if (!finding && stuck_at_ > 0) finding = absent_.empty() ? NobodyAbsent() : Absent();
    if (!finding) finding = Reported();
    if (!finding) return Nothing();
    finding->group = group_.name;
    for (const int rank : finding->ranks) {
      finding->world_ranks.push_back(group_.WorldRank(rank));
    }
    finding->since_s = SinceSeconds();
    return *std::move(finding);
  }

 private:
  struct Failure {
    int rank;
    const RecordedFailure* failure;
  };

  const RecordedCall& LastOf(int rank) const { return *group_.ranks[rank].last(); }
  // The call that ranks are stuck in, as one of them recorded it.
  const RecordedCall& StuckCall() const {
    for (const int rank : waiting_) {
      if (LastOf(rank).print.sequence == stuck_at_) return LastOf(rank);
    }
    return LastOf(waiting_.front());
  }

  // A rank waits for a message to or from a rank that did not do its part.
  std::optional<Finding> Message() const {
    for (const int rank : messages_) {
      const RecordedCall& call = LastOf(rank);
      const int peer = call.print.root;
      if (peer < 0 || peer >= group_.size() || group_.ranks[peer].dump == nullptr) continue;
      const RecordedCall* theirs = OtherEnd(rank, call);
      if (theirs != nullptr && theirs->print.count == call.print.count) continue;
      Finding finding{.kind = FindingKind::kNeverEntered, .sequence = call.print.sequence};
      finding.ranks = {peer};
      if (theirs != nullptr) {
        finding.kind = FindingKind::kMismatch;
        finding.text = absl::StrCat(group_.RankName(peer), " called ", CallOf(group_, *theirs),
                                    SiteOf(*theirs), ", but ", group_.RankName(rank), " called ",
                                    CallOf(group_, call), SiteOf(call));
      } else if (StillRunning(finding.ranks) && failures_.empty()) {
        continue;
      } else {
        finding.text = absl::StrCat(group_.RankName(peer), " never made its part of ",
                                    CallOf(group_, call), " of ", group_.RankName(rank),
                                    SiteOf(call), WhatTheyDidLast(finding.ranks));
      }
      return finding;
    }
    return std::nullopt;
  }

  const RecordedCall* OtherEnd(int rank, const RecordedCall& call) const {
    const OpKind wanted = call.print.op == OpKind::kSend ? OpKind::kReceive : OpKind::kSend;
    for (const RecordedCall& theirs : group_.ranks[call.print.root].dump->calls) {
      if (theirs.print.op == wanted && theirs.print.root == rank &&
          theirs.print.sequence == call.print.sequence) {
        return &theirs;
      }
    }
    return nullptr;
  }

  // Ranks that others saw end, or that nobody reports on and whose process is no more.
  std::optional<Finding> ProcessEnded() const {
    std::set<int> gone;
    for (const Failure& f : failures_) {
      if (f.failure->kind != FailureKind::kGone) continue;
      gone.insert(f.failure->blamed.begin(), f.failure->blamed.end());
    }
    if (gone.empty() && failures_.empty() && stuck_at_ > 0) {
      for (const int rank : absent_.empty() ? waiting_ : absent_) {
        const RankView& view = group_.ranks[rank];
        if (view.process == ProcessState::kEnded && view.dump->life == GroupLife::kMember) {
          gone.insert(rank);
        }
      }
      // A whole job that was killed says nothing about who was first.
      if (static_cast<int>(gone.size()) == group_.size()) gone.clear();
    }
    if (gone.empty()) return std::nullopt;
    Finding finding{.kind = FindingKind::kProcessEnded};
    finding.ranks.assign(gone.begin(), gone.end());
    const RankView& first = group_.ranks[finding.ranks.front()];
    // The call that it was to make, or was in; without its dump, the one that others are stuck in.
    finding.sequence = first.dump != nullptr ? first.last_completed() + 1
                       : stuck_at_ > 0       ? stuck_at_
                                             : failures_.front().failure->sequence;
    const std::string whose = absl::StrCat(
        group_.RankNames(finding.ranks), finding.ranks.size() == 1 ? "'s process" : "'s processes",
        " ended without leaving the group");
    finding.text = absl::StrCat(whose,
                                stuck_at_ < finding.sequence || stuck_at_ == 0
                                    ? ""
                                    : ", in or before " + CallOf(group_, StuckCall()),
                                WhatTheyDidLast(finding.ranks));
    return finding;
  }

  // Whose process is stopped, by a signal or a debugger, while others wait for it.
  std::optional<Finding> Stopped() const {
    Finding finding{.kind = FindingKind::kStopped};
    std::vector<std::string> processes;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const RankView& view = group_.ranks[rank];
      if (view.process != ProcessState::kStopped || view.dump->failure || !IsAwaited(rank))
        continue;
      finding.ranks.push_back(rank);
      processes.push_back(absl::StrCat(view.dump->process));
    }
    // Of a job that was stopped as a whole nobody is to blame.
    if (finding.ranks.empty() || static_cast<int>(processes.size()) == group_.size()) {
      return std::nullopt;
    }
    const RankView& first = group_.ranks[finding.ranks.front()];
    const RecordedCall& call = stuck_at_ > 0 ? StuckCall() : LastOf(messages_.front());
    const bool entered = first.in_call() && first.last()->print.sequence == call.print.sequence;
    finding.sequence = call.print.sequence;
    finding.text = absl::StrCat(group_.RankNames(finding.ranks),
                                processes.size() == 1 ? " is" : " are", " stopped (process ",
                                absl::StrJoin(processes, ", "), ")", entered ? " in " : " before ",
                                CallOf(group_, call), "; nothing was heard of it for ",
                                Seconds(group_.end_ns() - first.last_event_ns()),
                                WhatTheyDidLast(finding.ranks), stuck_at_ > 0 ? WhoWaited() : "");
    return finding;
  }

  // Whether others are stuck in a call that this rank has not done its part of.
  bool IsAwaited(int rank) const {
    if (group_.ranks[rank].dump->life != GroupLife::kMember) return false;
    if (stuck_at_ > 0) return group_.ranks[rank].last_completed() < stuck_at_;
    return std::any_of(messages_.begin(), messages_.end(), [&](int other) {
      return other == rank || LastOf(other).print.root == rank;
    });
  }

  // Some ranks wait in a call that others with a dump did not make.
  std::optional<Finding> Absent() const {
    std::vector<int> left, leaving, away;
    for (const int rank : absent_) {
      switch (group_.ranks[rank].dump->life) {
        case GroupLife::kLeft:
          left.push_back(rank);
          break;
        case GroupLife::kLeaving:
          leaving.push_back(rank);
          break;
        default:
          away.push_back(rank);
      }
    }
    if (failures_.empty() && StillRunning(away)) return std::nullopt;
    // Those that are still members are to blame before those that broke off because of them.
    if (!away.empty()) return NeverEntered(FindingKind::kNeverEntered, away, " never entered ");
    if (left.size() > waiting_.size() && Quiet(left)) return ExtraCall();
    if (!leaving.empty()) {
      return NeverEntered(FindingKind::kTearDown, leaving,
                          " tore the group down and did not enter ");
    }
    return NeverEntered(FindingKind::kLeft, left, " left the group before ");
  }

  bool Quiet(const std::vector<int>& ranks) const {
    return std::all_of(ranks.begin(), ranks.end(),
                       [this](int rank) { return !group_.ranks[rank].dump->failure.has_value(); });
  }

  Finding NeverEntered(FindingKind kind, std::vector<int> ranks, const char* verb) const {
    Finding finding{.kind = kind, .sequence = stuck_at_, .ranks = std::move(ranks)};
    finding.text = absl::StrCat(group_.RankNames(finding.ranks), verb, CallOf(group_, StuckCall()),
                                WhatTheyDidLast(finding.ranks), WhoWaited());
    return finding;
  }

  Finding ExtraCall() const {
    Finding finding{.kind = FindingKind::kExtraCall, .sequence = stuck_at_, .ranks = waiting_};
    finding.text = absl::StrCat(group_.RankNames(waiting_), " called ", CallOf(group_, StuckCall()),
                                SiteOf(StuckCall()), ", which the other ", absent_.size(),
                                " never did: they left the group after #", stuck_at_ - 1);
    return finding;
  }

  // All that left a dump made the call, and yet it did not end.
  std::optional<Finding> NobodyAbsent() const {
    const std::vector<int> missing = group_.Missing();
    const std::vector<Failure> first_hand = FirstHand();
    for (const Failure& f : first_hand) {
      if (std::optional<Finding> late = CameLate(f)) return late;
    }
    if (!first_hand.empty()) {
      const std::vector<int>& blamed = first_hand.front().failure->blamed;
      if (std::includes(missing.begin(), missing.end(), blamed.begin(), blamed.end())) {
        return NoDump(blamed);
      }
      return Link(first_hand.front());
    }
    // Without a failure, either the run goes on or it was ended from outside while it hung.
    if (!missing.empty() && group_.now_ns == 0) return NoDump(missing);
    return std::nullopt;
  }

  // What ranks found themselves and blame others for, the earliest first.
  std::vector<Failure> FirstHand() const {
    std::vector<Failure> found;
    for (const Failure& f : failures_) {
      if (f.failure->kind != FailureKind::kAborted && !f.failure->blamed.empty())
        found.push_back(f);
    }
    const auto at = [this](const Failure& f) { return group_.ranks[f.rank].At(f.failure->at_ns); };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Failure& a, const Failure& b) { return at(a) < at(b); });
    return found;
  }

  Finding NoDump(const std::vector<int>& ranks) const {
    Finding finding{.kind = FindingKind::kNoDump, .sequence = stuck_at_, .ranks = ranks};
    finding.text = absl::StrCat(group_.RankNames(ranks), " left no dump and did not answer in ",
                                CallOf(group_, StuckCall()), WhoWaited());
    return finding;
  }

  // The blamed ranks made the call after the reporter had given up.
  std::optional<Finding> CameLate(const Failure& f) const {
    std::vector<int> late;
    int64_t delay = 0;
    for (const int rank : f.failure->blamed) {
      const RecordedCall* call = group_.ranks[rank].Find(f.failure->sequence);
      if (call == nullptr) continue;
      const int64_t entered = group_.ranks[rank].At(call->started_ns);
      const int64_t given_up = group_.ranks[f.rank].At(f.failure->at_ns);
      if (entered <= given_up) continue;
      late.push_back(rank);
      const RecordedCall* reporters = group_.ranks[f.rank].Find(f.failure->sequence);
      if (reporters == nullptr) continue;
      delay = std::max(delay, entered - group_.ranks[f.rank].At(reporters->started_ns));
    }
    if (late.empty()) return std::nullopt;
    Finding finding{.kind = FindingKind::kCameLate, .sequence = f.failure->sequence, .ranks = late};
    finding.text = absl::StrCat(group_.RankNames(late), " entered ", CallOf(group_, StuckCall()),
                                " ", Seconds(delay), " after ", group_.RankName(f.rank),
                                ", which had given up by then", WhatTheyDidBefore(late));
    return finding;
  }

  Finding Link(const Failure& f) const {
    Finding finding{.kind = FindingKind::kLink, .sequence = stuck_at_};
    std::vector<int> deaf = Deaf();
    // A third rank that blames two of them knows more: others may have been on their way.
    const std::vector<int>& blamed = f.failure->blamed;
    if (blamed.size() == 2 &&
        std::includes(deaf.begin(), deaf.end(), blamed.begin(), blamed.end())) {
      deaf = blamed;
    }
    if (deaf.size() == 2) {
      finding.ranks = deaf;
      finding.text =
          absl::StrCat(group_.RankName(deaf[0]), " and ", group_.RankName(deaf[1]),
                       " did not hear from each other in ", CallOf(group_, StuckCall()),
                       ", though all others heard both: a cut or stalled link", WhoWaited());
      return finding;
    }
    finding.ranks = blamed;
    finding.ranks.push_back(f.rank);
    std::sort(finding.ranks.begin(), finding.ranks.end());
    finding.text =
        absl::StrCat("no data came from ", group_.RankNames(blamed), " to ",
                     group_.RankName(f.rank), " in ", CallOf(group_, StuckCall()),
                     ", though all ranks had entered it: a cut or stalled ", "link", WhoWaited());
    return finding;
  }

  // Ranks that waited for others at the meeting of the call, when there are some that did not.
  std::vector<int> Deaf() const {
    std::vector<int> deaf;
    for (const int rank : waiting_) {
      if (LastOf(rank).print.sequence == stuck_at_ && LastOf(rank).arrived_ns == 0) {
        deaf.push_back(rank);
      }
    }
    return deaf;
  }

  bool StillRunning(const std::vector<int>& ranks) const {
    return std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
      return group_.ranks[rank].process == ProcessState::kRunning;
    });
  }

  // What to say of a group without a fault.
  Finding Nothing() const {
    Finding finding{.kind = FindingKind::kNone, .group = group_.name, .sequence = stuck_at_};
    if (stuck_at_ > 0) {
      finding.text = absl::StrCat(waiting_.size(), " of ", group_.size(), " ranks are in ",
                                  CallOf(group_, StuckCall()), WhoWaited());
      if (!absent_.empty()) {
        absl::StrAppend(&finding.text, "; not there yet: ", group_.RankNames(absent_));
      }
      return finding;
    }
    uint64_t least = UINT64_MAX, most = 0;
    size_t known = 0;
    for (const RankView& rank : group_.ranks) {
      if (rank.dump == nullptr) continue;
      ++known;
      least = std::min(least, rank.last_completed());
      most = std::max(most, rank.last_completed());
    }
    const std::string who = known == group_.ranks.size()
                                ? absl::StrCat("all ", known, " ranks")
                                : absl::StrCat(known, " of ", group_.size(), " ranks");
    finding.text =
        absl::StrCat(who, " completed #", least, least == most ? "" : absl::StrCat(" to #", most),
                     " of group ", group_.name);
    return finding;
  }

  // A failure that no call explains: what its rank said.
  std::optional<Finding> Reported() const {
    const Failure* best = nullptr;
    for (const Failure& f : failures_) {
      const bool first_hand = f.failure->kind != FailureKind::kAborted;
      if (best == nullptr || (first_hand && best->failure->kind == FailureKind::kAborted))
        best = &f;
    }
    if (best == nullptr) return std::nullopt;
    Finding finding{.kind = FindingKind::kReported, .sequence = best->failure->sequence};
    finding.ranks = best->failure->blamed;
    finding.text = absl::StrCat(group_.RankName(best->rank), " of group ", group_.name,
                                " reported: ", best->failure->text);
    return finding;
  }

  std::string WhatTheyDidLast(const std::vector<int>& ranks) const {
    const RankView& view = group_.ranks[ranks.front()];
    if (ranks.size() > 1) return "";
    if (view.dump == nullptr) return "; it left no dump";
    std::string text = view.last_completed() == 0
                           ? "; it had completed no call"
                           : absl::StrCat("; last completed #", view.last_completed());
    if (const RecordedCall* last = view.last()) {
      absl::StrAppend(&text, "; its last call was", SiteOf(*last));
      if (last->file.empty()) absl::StrAppend(&text, " #", last->print.sequence);
    }
    if (!view.dump->queued.empty()) {
      absl::StrAppend(&text, "; ", view.dump->queued.size(), " more calls wait for their turn");
    }
    return text;
  }

  // Of ranks that have made the call meanwhile: where they were before it.
  std::string WhatTheyDidBefore(const std::vector<int>& ranks) const {
    if (ranks.size() > 1) return "";
    const RankView& view = group_.ranks[ranks.front()];
    const RecordedCall* before =
        view.last() == nullptr ? nullptr : view.Find(view.last_started() - 1);
    if (before == nullptr || before->finished_ns == 0) return "";
    const int64_t between = view.last()->started_ns - before->finished_ns;
    return absl::StrCat("; it was elsewhere for ", Seconds(between), " since #",
                        before->print.sequence, SiteOf(*before));
  }

  std::string WhoWaited() const {
    int64_t longest = 0;
    const int64_t end = group_.end_ns();
    for (const int rank : waiting_) {
      const RecordedCall& call = LastOf(rank);
      const int64_t until = call.finished_ns > 0 ? group_.ranks[rank].At(call.finished_ns) : end;
      longest = std::max(longest, until - group_.ranks[rank].At(call.started_ns));
    }
    return absl::StrCat("; ",
                        waiting_.size() == 1 ? "1 rank" : absl::StrCat(waiting_.size(), " ranks"),
                        " waited ", Seconds(longest));
  }

  double SinceSeconds() const {
    int64_t since = group_.end_ns();
    for (const int rank : waiting_) {
      since = std::min(since, group_.ranks[rank].At(LastOf(rank).started_ns));
    }
    return kNanosecond * static_cast<double>(since) + group_.wall_clock_s;
  }

  const GroupView& group_;
  std::vector<int> messages_;  // in a send or a receive
  std::vector<int> waiting_;   // in a call, or failed in it
  std::vector<int> absent_;    // have a dump, and did not make the call that others are stuck in
  uint64_t stuck_at_ = 0;      // the first call that a rank did not get through; 0: none
  std::vector<Failure> failures_;
};

}  // namespace

Finding DiagnoseGroup(const GroupView& group) { return GroupCase(group).Find(); }

}  // namespace plinth::comm
