#include "plinth/comm/executor/program_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plinth/comm/call/verdict.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/tuner/table.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// What all ranks know alike of a call, so that all choose alike.
Question QuestionOf(const CollectiveCall& call, int size, int ranks_per_host) {
  Question question;
  question.op = call.print.op;
  question.size = size;
  question.ranks_per_host = ranks_per_host;
  question.element_bytes = static_cast<int>(DTypeSize(call.print.dtype));
  question.partial_bytes = static_cast<int>(DTypeSize(AccumulatorOf(call.print.dtype)));
  int64_t elements = call.print.count;
  switch (call.print.op) {
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kGather:
    case OpKind::kScatter:
    case OpKind::kAllToAll:
      elements *= size;
      break;
    case OpKind::kAllToAllV:
      elements = size * *std::max_element(call.pair_counts.begin(), call.pair_counts.end());
      break;
    default:
      break;
  }
  question.bytes = elements * question.element_bytes;
  return question;
}

}  // namespace

absl::StatusOr<Pins> PinsOf(std::string_view text) {
  if (text.empty() || text == "auto") return Pins();
  const Algorithm* algorithm = FindAlgorithm(text);
  if (algorithm == nullptr) return ParsePins(text);
  Pins pins;
  for (int op = static_cast<int>(OpKind::kAllReduce); op <= static_cast<int>(OpKind::kAllToAll);
       ++op) {
    const auto kind = static_cast<OpKind>(op);
    if (algorithm->Supports(kind)) pins[kind] = {std::string(text), 0};
  }
  return pins;
}

ProgramBackend::ProgramBackend(Transport* transport, CostTable table, Pins pins, int ranks_per_host)
    : transport_(*transport),
      ranks_per_host_(ranks_per_host),
      tuner_(std::move(table), std::move(pins)),
      executor_(transport) {}

bool ProgramBackend::Takes(const CollectiveCall& call) const { return HasProgram(call.print.op); }

absl::Status ProgramBackend::Run(const CollectiveCall& call, absl::Time deadline) {
  ASSIGN_OR_RETURN(const Choice choice,
                   tuner_.Choose(QuestionOf(call, transport_.size(), ranks_per_host_)));
  const Algorithm* algorithm = FindAlgorithm(choice.algorithm);
  CHECK(algorithm != nullptr) << choice.algorithm;
  const auto failure = executor_.Run(ProgramFor(call, *algorithm), call,
                                     {choice.slices, choice.pipelined}, deadline);
  if (!failure.has_value()) return absl::OkStatus();
  return Verdict(*failure, call.print, false, call.timeout, call.group);
}

const RankProgram& ProgramBackend::ProgramFor(const CollectiveCall& call,
                                              const Algorithm& algorithm) {
  Problem problem;
  problem.op = PlainOp(call.print.op);
  problem.size = transport_.size();
  problem.ranks_per_host = ranks_per_host_;
  problem.root = HasRoot(problem.op) ? call.print.root : 0;
  const Key key{problem.op, problem.root, &algorithm};
  const auto known = programs_.find(key);
  if (known != programs_.end()) return known->second;
  return programs_.emplace(key, GenerateProgram(algorithm, problem, transport_.rank()))
      .first->second;
}

}  // namespace plinth::comm
