#include "plinth/comm/bench/tuning/choices.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/program/print.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/tuner/choice.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

bool SharesMemory(const std::string& transport) { return transport == "shm" || transport == "mem"; }

Question QuestionOf(OpKind op, const std::string& transport, const Shape& shape) {
  Question question;
  question.op = op;
  question.size = question.ranks_per_host = shape.ranks;
  question.bytes = ShapeBytes(shape);
  question.element_bytes = static_cast<int>(DTypeSize(shape.dtype));
  question.partial_bytes = static_cast<int>(DTypeSize(AccumulatorOf(shape.dtype)));
  question.direct = SharesMemory(transport);
  return question;
}

bool TravelsInNote(const Shape& shape) {
  const int64_t elements = InputElements(shape, HasRoot(shape.op) ? shape.root : 0);
  return elements * DTypeSize(shape.dtype) <= GroupOptions().note_payload_bytes;
}

}  // namespace

std::optional<OpKind> ProgramOp(BenchOp op) {
  switch (op) {
    case BenchOp::kAllReduce:
      return OpKind::kAllReduce;
    case BenchOp::kReduceScatter:
      return OpKind::kReduceScatter;
    case BenchOp::kAllGather:
      return OpKind::kAllGather;
    case BenchOp::kBroadcast:
      return OpKind::kBroadcast;
    case BenchOp::kReduce:
      return OpKind::kReduce;
    case BenchOp::kGather:
      return OpKind::kGather;
    case BenchOp::kScatter:
      return OpKind::kScatter;
    case BenchOp::kAllToAll:
      return OpKind::kAllToAll;
    case BenchOp::kSendReceive:
    case BenchOp::kBarrier:
      return std::nullopt;
  }
  return std::nullopt;
}

bool CanPin(const std::string& algorithm, BenchOp op) {
  if (algorithm == "auto") return true;
  const std::optional<OpKind> kind = ProgramOp(op);
  const Algorithm* found = FindAlgorithm(algorithm);
  return kind.has_value() && found != nullptr && found->Supports(*kind);
}

std::string ChosenAlgorithm(const std::string& transport, const TableSet& tables, const Pins& pins,
                            const Shape& shape) {
  const std::optional<OpKind> op = ProgramOp(shape.op);
  if (!op.has_value()) return "-";
  if (TravelsInNote(shape)) return "note";
  if (pins.empty() && SharesMemory(transport)) return std::string(kDirect);
  Tuner tuner(tables.For(transport), pins);
  const absl::StatusOr<Choice> choice = tuner.Choose(QuestionOf(*op, transport, shape));
  if (!choice.ok()) return "-";
  const std::string name(choice->algorithm);
  return choice->slices == 1 ? name : absl::StrCat(name, ":", choice->slices);
}

absl::StatusOr<std::string> PrintPrograms(const BenchConfig& config) {
  std::string text;
  for (const BenchOp op : config.ops) {
    const std::optional<OpKind> kind = ProgramOp(op);
    if (!kind.has_value()) continue;
    for (const std::string& name : config.algorithms) {
      const Algorithm& algorithm = name == "auto" ? Algorithms().front() : *FindAlgorithm(name);
      if (!algorithm.Supports(*kind)) continue;
      Problem problem{.op = *kind, .size = config.ranks};
      if (HasRoot(op) && !config.roots.empty()) {
        problem.root = std::min(config.roots.front(), config.ranks - 1);
      }
      const std::vector<RankProgram> programs = GenerateAllPrograms(algorithm, problem);
      absl::StrAppend(&text, "# ", std::string(BenchOpName(op)), ", ", std::string(algorithm.name),
                      ", ", config.ranks, " ranks",
                      HasRoot(op) ? absl::StrCat(", root ", problem.root) : "", "\n",
                      PrintTable(programs), "\n# rank 0\n", PrintProgram(programs[0]), "\n");
    }
  }
  if (text.empty()) {
    return absl::InvalidArgumentError("no such algorithm has a program for such an operation");
  }
  return text;
}

absl::StatusOr<std::string> ExplainChoices(const BenchConfig& config) {
  std::string text;
  for (const std::string& name : config.transports) {
    const std::string transport = name == "auto" ? "shm" : name;
    const Tuner tuner(config.tables.For(transport));
    for (const BenchOp op : config.ops) {
      const std::optional<OpKind> kind = ProgramOp(op);
      if (!kind.has_value()) continue;
      for (const Shape& shape : ShapesOf(config, op, config.ranks)) {
        absl::StrAppend(
            &text, "# ", transport, ": ", std::string(BenchOpName(op)), ", ", ShapeBytes(shape),
            " bytes of ", std::string(DTypeName(shape.dtype)), ", ", shape.ranks, " ranks\n",
            TravelsInNote(shape) ? "chosen: note, as little data travels with the ranks' meeting\n"
                                 : tuner.Explain(QuestionOf(*kind, transport, shape)),
            "\n");
      }
    }
  }
  if (text.empty()) {
    return absl::InvalidArgumentError("send_recv and barrier have no algorithms to choose from");
  }
  return text;
}

}  // namespace plinth::comm
