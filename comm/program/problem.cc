#include "plinth/comm/program/problem.h"

namespace plinth::comm {

bool HasProgram(OpKind op) { return op >= OpKind::kAllReduce && op <= OpKind::kAllToAllV; }

OpKind PlainOp(OpKind op) {
  switch (op) {
    case OpKind::kReduceScatterV:
      return OpKind::kReduceScatter;
    case OpKind::kAllGatherV:
      return OpKind::kAllGather;
    case OpKind::kAllToAllV:
      return OpKind::kAllToAll;
    default:
      return op;
  }
}

bool IsReduction(OpKind op) {
  const OpKind plain = PlainOp(op);
  return plain == OpKind::kAllReduce || plain == OpKind::kReduce || plain == OpKind::kReduceScatter;
}

bool HasRoot(OpKind op) {
  return op == OpKind::kBroadcast || op == OpKind::kReduce || op == OpKind::kGather ||
         op == OpKind::kScatter;
}

int32_t BlocksOf(const Problem& problem) {
  switch (PlainOp(problem.op)) {
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kGather:
    case OpKind::kScatter:
      return problem.size;
    case OpKind::kAllToAll:
      return problem.size * problem.size;
    default:
      return 0;
  }
}

int32_t BlockBetween(const Problem& problem, int from, int to) {
  switch (PlainOp(problem.op)) {
    case OpKind::kReduceScatter:
    case OpKind::kScatter:
      return to;
    case OpKind::kAllGather:
    case OpKind::kGather:
      return from;
    case OpKind::kAllToAll:
      return from * problem.size + to;
    default:
      return 0;
  }
}

bool HasInput(const Problem& problem, int rank, int32_t block) {
  switch (PlainOp(problem.op)) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kReduceScatter:
      return true;
    case OpKind::kBroadcast:
    case OpKind::kScatter:
      return rank == problem.root;
    case OpKind::kAllGather:
    case OpKind::kGather:
      return rank == block;
    case OpKind::kAllToAll:
      return rank == block / problem.size;
    default:
      return false;
  }
}

bool HasOutput(const Problem& problem, int rank, int32_t block) {
  switch (PlainOp(problem.op)) {
    case OpKind::kAllReduce:
    case OpKind::kBroadcast:
    case OpKind::kAllGather:
      return true;
    case OpKind::kReduce:
    case OpKind::kGather:
      return rank == problem.root;
    case OpKind::kReduceScatter:
    case OpKind::kScatter:
      return rank == block;
    case OpKind::kAllToAll:
      return rank == block % problem.size;
    default:
      return false;
  }
}

bool SharesMemory(const Problem& problem, int rank, int32_t block) {
  return PlainOp(problem.op) != OpKind::kAllToAll && HasInput(problem, rank, block) &&
         HasOutput(problem, rank, block);
}

}  // namespace plinth::comm
