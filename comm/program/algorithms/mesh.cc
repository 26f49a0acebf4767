// Mesh: every two ranks talk directly, so each phase is one round.
//
// HCCL's intra-server algorithm for fully connected devices (HCCL user guide, "Mesh": one step a
// phase; broadcast = scatter + all_gather, reduce = reduce_scatter + gather, all_reduce =
// reduce_scatter + all_gather). n-1 messages leave each rank in a round; no byte travels more often
// than it must, and every sum is made at one rank, from all ranks' elements, in rank order.
#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

// To each rank b: everyone's block b.
void CollectShares(ProgramBuilder& mesh, int round) {
  for (int from = 0; from < mesh.size(); ++from) {
    for (int hop = 1; hop < mesh.size(); ++hop) {
      const int to = (from + hop) % mesh.size();
      mesh.Send(round, from, to, to);
    }
  }
}

// From each rank b its block b to everyone but `except`.
void SpreadShares(ProgramBuilder& mesh, int round, int except = -1) {
  for (int from = 0; from < mesh.size(); ++from) {
    for (int hop = 1; hop < mesh.size(); ++hop) {
      const int to = (from + hop) % mesh.size();
      if (to != except) mesh.Send(round, from, to, from);
    }
  }
}

// To each rank b block b of the root.
void ScatterShares(ProgramBuilder& mesh, int round, int root) {
  for (int hop = 1; hop < mesh.size(); ++hop) {
    const int to = (root + hop) % mesh.size();
    mesh.Send(round, root, to, to);
  }
}

// To the root block b of each rank b.
void GatherShares(ProgramBuilder& mesh, int round, int root) {
  for (int hop = 1; hop < mesh.size(); ++hop) {
    const int from = (root + hop) % mesh.size();
    mesh.Send(round, from, root, from);
  }
}

void ExchangeAll(ProgramBuilder& mesh) {
  const int n = mesh.size();
  for (int from = 0; from < n; ++from) {
    for (int hop = 1; hop < n; ++hop) {
      const int to = (from + hop) % n;
      mesh.Send(0, from, to, from * n + to);
    }
  }
}

}  // namespace

void GenerateMesh(ProgramBuilder& mesh) {
  const int root = mesh.problem().root;
  mesh.CutInto(mesh.size());
  switch (PlainOp(mesh.problem().op)) {
    case OpKind::kAllReduce:
      CollectShares(mesh, 0);
      SpreadShares(mesh, 1);
      break;
    case OpKind::kReduceScatter:
      CollectShares(mesh, 0);
      break;
    case OpKind::kAllGather:
      SpreadShares(mesh, 0);
      break;
    case OpKind::kBroadcast:
      ScatterShares(mesh, 0, root);
      SpreadShares(mesh, 1, root);
      break;
    case OpKind::kReduce:
      CollectShares(mesh, 0);
      GatherShares(mesh, 1, root);
      break;
    case OpKind::kGather:
      GatherShares(mesh, 0, root);
      break;
    case OpKind::kScatter:
      ScatterShares(mesh, 0, root);
      break;
    default:
      ExchangeAll(mesh);
      break;
  }
}

}  // namespace plinth::comm
