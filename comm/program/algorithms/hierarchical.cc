// Two levels: first between the ranks of a host, then between hosts.
//
// HCCL user guide, "Hierarchical communication principles", and the usual scheme of MPI libraries
// and NCCL. Rank (h, l) is the l-th of host h. It speaks for place l: between hosts only ranks of
// equal place talk, all places at once, so that each byte crosses between two hosts as seldom as
// can be and all ranks share that work.
//   all_reduce      sums for place l to (h, l); reduce_scatter and all_gather between the hosts,
//                   which own a part of it each; and back within the host
//   reduce_scatter  sums within the host first, then between hosts
//   all_gather      between hosts first, then within the host
//   broadcast, reduce   a binomial tree between hosts and one in each
// A host with fewer ranks than the others has each speak for several places.
#include <algorithm>

#include "plinth/comm/program/algorithms/binomial_links.h"
#include "plinth/comm/program/algorithms/generators.h"

namespace plinth::comm {
namespace {

class Hierarchical {
 public:
  explicit Hierarchical(ProgramBuilder& builder)
      : builder_(builder),
        n_(builder.size()),
        places_(std::min(builder.problem().ranks_per_host, n_)),
        hosts_((n_ + places_ - 1) / places_) {}

  // Block (place, owner host) = place * hosts + owner.
  void AllReduce() {
    builder_.CutInto(places_ * hosts_);
    int round = builder_.next_round();
    ForEachBlock([&](int place, int owner, int block) { SumInHosts(round, place, block); });
    round = builder_.next_round();
    ForEachBlock([&](int place, int owner, int block) {
      const int to = Speaker(owner, place);
      ForOtherHosts(owner,
                    [&](int host) { builder_.Send(round, Speaker(host, place), to, block); });
    });
    round = builder_.next_round();
    ForEachBlock([&](int place, int owner, int block) {
      const int from = Speaker(owner, place);
      ForOtherHosts(owner,
                    [&](int host) { builder_.Send(round, from, Speaker(host, place), block); });
    });
    round = builder_.next_round();
    ForEachBlock([&](int place, int owner, int block) { TellHosts(round, place, block); });
  }

  void ReduceScatter() {
    int round = builder_.next_round();
    for (int rank = 0; rank < n_; ++rank) SumInHosts(round, PlaceOf(rank), rank);
    round = builder_.next_round();
    for (int rank = 0; rank < n_; ++rank) {
      ForOtherHosts(HostOf(rank), [&](int host) {
        builder_.Send(round, Speaker(host, PlaceOf(rank)), rank, rank);
      });
    }
  }

  void AllGather() {
    int round = builder_.next_round();
    for (int rank = 0; rank < n_; ++rank) {
      ForOtherHosts(HostOf(rank), [&](int host) {
        builder_.Send(round, rank, Speaker(host, PlaceOf(rank)), rank);
      });
    }
    round = builder_.next_round();
    for (int rank = 0; rank < n_; ++rank) TellHosts(round, PlaceOf(rank), rank);
  }

  void Broadcast() {
    BinomialLinks(hosts_, [&](int round, int parent, int child) {
      builder_.Send(round, Leader(parent), Leader(child), 0);
    });
    const int first = builder_.next_round();
    ForLinksInHosts([&](int round, int levels, int parent, int child) {
      builder_.Send(first + round, parent, child, 0);
    });
  }

  void Reduce() {
    ForLinksInHosts([&](int round, int levels, int parent, int child) {
      builder_.Send(levels - 1 - round, child, parent, 0);
    });
    const int last = builder_.next_round() + BinomialLevels(hosts_) - 1;
    BinomialLinks(hosts_, [&](int round, int parent, int child) {
      builder_.Send(last - round, Leader(child), Leader(parent), 0);
    });
  }

 private:
  int HostOf(int rank) const { return rank / places_; }
  int PlaceOf(int rank) const { return rank % places_; }
  int RanksOn(int host) const { return std::min(places_, n_ - host * places_); }
  // Who on `host` speaks for `place`.
  int Speaker(int host, int place) const { return host * places_ + place % RanksOn(host); }
  // Of the host that is `index` after the root's: who speaks for the root's place, so the root
  // itself on its own.
  int Leader(int index) const {
    const int root = builder_.problem().root;
    return Speaker((HostOf(root) + index) % hosts_, PlaceOf(root));
  }

  template <typename Visit>
  void ForEachBlock(const Visit& visit) const {
    for (int block = 0; block < places_ * hosts_; ++block) {
      visit(block / hosts_, block % hosts_, block);
    }
  }
  template <typename Visit>
  void ForOtherHosts(int than, const Visit& visit) const {
    for (int i = 1; i < hosts_; ++i) visit((than + i) % hosts_);
  }
  // The binomial tree of each host below its leader: visit(round, levels, parent, child).
  template <typename Visit>
  void ForLinksInHosts(const Visit& visit) const {
    for (int index = 0; index < hosts_; ++index) {
      const int leader = Leader(index);
      const int begin = HostOf(leader) * places_;
      const int count = RanksOn(HostOf(leader));
      const auto rank_at = [&](int i) { return begin + (leader - begin + i) % count; };
      BinomialLinks(count, [&](int round, int parent, int child) {
        visit(round, BinomialLevels(count), rank_at(parent), rank_at(child));
      });
    }
  }

  void SumInHosts(int round, int place, int block) {
    for (int rank = 0; rank < n_; ++rank) {
      const int speaker = Speaker(HostOf(rank), place);
      if (rank != speaker) builder_.Send(round, rank, speaker, block);
    }
  }
  void TellHosts(int round, int place, int block) {
    for (int rank = 0; rank < n_; ++rank) {
      const int speaker = Speaker(HostOf(rank), place);
      if (rank != speaker) builder_.Send(round, speaker, rank, block);
    }
  }

  ProgramBuilder& builder_;
  const int n_;
  const int places_;  // on a full host
  const int hosts_;
};

}  // namespace

void GenerateHierarchical(ProgramBuilder& builder) {
  Hierarchical levels(builder);
  switch (PlainOp(builder.problem().op)) {
    case OpKind::kReduceScatter:
      return levels.ReduceScatter();
    case OpKind::kAllGather:
      return levels.AllGather();
    case OpKind::kBroadcast:
      return levels.Broadcast();
    case OpKind::kReduce:
      return levels.Reduce();
    default:
      return levels.AllReduce();
  }
}

}  // namespace plinth::comm
