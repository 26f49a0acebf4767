// The verdict over all groups of a run; that of one group is in diagnose_group.cc.
#include "plinth/comm/doctor/diagnose.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::comm {
namespace {

// The group in which a rank (by its world number) waits, or failed, other than `but`.
const Finding* WaitsElsewhere(const RunView& run, const std::vector<Finding>& findings,
                              int world_rank, const std::string& but) {
  for (size_t i = 0; i < run.groups.size(); ++i) {
    const GroupView& group = run.groups[i];
    if (group.name == but || findings[i].kind == FindingKind::kNone) continue;
    for (int rank = 0; rank < group.size(); ++rank) {
      if (group.WorldRank(rank) == world_rank && group.ranks[rank].in_call()) return &findings[i];
    }
  }
  return nullptr;
}

// A finding is a consequence when those it names were kept by another group. A rank that has
// already failed there counts too: its program ends without coming to the other call.
bool IsConsequence(const RunView& run, const std::vector<Finding>& findings, const Finding& finding,
                   const Finding** cause) {
  if (finding.kind == FindingKind::kMismatch || finding.world_ranks.empty()) return false;
  for (const int world : finding.world_ranks) {
    *cause = WaitsElsewhere(run, findings, world, finding.group);
    if (*cause == nullptr) return false;
  }
  return true;
}

Finding Crossed(const std::vector<Finding>& findings) {
  Finding crossed{.kind = FindingKind::kCrossedGroups};
  std::vector<std::string> parts;
  for (const Finding& finding : findings) {
    if (finding.kind == FindingKind::kNone) continue;
    if (crossed.group.empty()) {
      crossed.group = finding.group;
      crossed.sequence = finding.sequence;
    }
    crossed.world_ranks.insert(crossed.world_ranks.end(), finding.world_ranks.begin(),
                               finding.world_ranks.end());
    parts.push_back(finding.text);
  }
  crossed.ranks = crossed.world_ranks;
  crossed.text =
      absl::StrCat("ranks wait for each other in different groups, which they called in ",
                   "different orders: ", absl::StrJoin(parts, " | "));
  return crossed;
}

}  // namespace

std::string_view FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kNone:
      return "none";
    case FindingKind::kMismatch:
      return "mismatch";
    case FindingKind::kProcessEnded:
      return "process_ended";
    case FindingKind::kStopped:
      return "stopped";
    case FindingKind::kNeverEntered:
      return "never_entered";
    case FindingKind::kCameLate:
      return "came_late";
    case FindingKind::kTearDown:
      return "tear_down";
    case FindingKind::kLeft:
      return "left";
    case FindingKind::kExtraCall:
      return "extra_call";
    case FindingKind::kLink:
      return "link";
    case FindingKind::kNoDump:
      return "no_dump";
    case FindingKind::kCrossedGroups:
      return "crossed_groups";
    case FindingKind::kReported:
      return "reported";
  }
  return "unknown";
}

Diagnosis Diagnose(const RunView& run) {
  std::vector<Finding> findings;
  for (const GroupView& group : run.groups) findings.push_back(DiagnoseGroup(group));
  const Finding* verdict = nullptr;
  bool any = false;
  for (const Finding& finding : findings) {
    if (finding.kind == FindingKind::kNone) continue;
    any = true;
    const Finding* cause = nullptr;
    if (IsConsequence(run, findings, finding, &cause)) continue;
    if (verdict == nullptr || finding.since_s < verdict->since_s) verdict = &finding;
  }
  Diagnosis diagnosis;
  if (any && verdict == nullptr) {
    diagnosis.verdict = Crossed(findings);
    return diagnosis;
  }
  if (verdict == nullptr) {
    std::vector<std::string> parts;
    for (const Finding& finding : findings) parts.push_back(finding.text);
    diagnosis.verdict.text = absl::StrCat("no fault found: ", absl::StrJoin(parts, "; "));
    return diagnosis;
  }
  diagnosis.verdict = *verdict;
  for (const Finding& finding : findings) {
    if (finding.kind != FindingKind::kNone && &finding != verdict)
      diagnosis.others.push_back(finding);
  }
  return diagnosis;
}

}  // namespace plinth::comm
