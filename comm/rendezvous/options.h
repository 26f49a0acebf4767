// Where a rank stands in its group and how it finds the others.
#ifndef PLINTH_COMM_RENDEZVOUS_OPTIONS_H_
#define PLINTH_COMM_RENDEZVOUS_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace plinth::comm {

enum class TransportKind {
  kAuto,  // shm when all ranks are on one host, else tcp
  kShm,
  kTcp,
  kMpi,   // OpenMPI, for ranks that mpirun started; loaded at run time
  kNccl,  // data on GPUs through NCCL, loaded at run time; ranks meet as with kAuto
};

inline constexpr int kMostTcpStreams = 16;

// The default is a world of one. Usually filled by OptionsFromEnvironment.
struct CommOptions {
  // Who started the ranks, for people: "torchrun", "torchrun inside slurm".
  std::string launcher;
  int rank = 0;  // [0, size)
  int size = 1;
  int local_rank = 0;  // place among the ranks of this host, [0, local_size)
  int local_size = 1;
  TransportKind transport = TransportKind::kAuto;

  // Rank 0 listens here while a group forms; the others connect. Unused when size is 1. The host
  // may be several names or addresses of one host, by commas.
  std::string store_host = "127.0.0.1";
  int store_port = 0;
  // Rank 0 only: a socket that listens at store_port, which its store takes over; for a launcher
  // that must not lose the port before rank 0 uses it. -1: the store opens its own.
  int store_socket = -1;
  // So many ports from store_port on are tried while another launch has them; more than one
  // needs a run_id, which tells the launches apart.
  int store_ports = 1;
  // A text that all ranks of one launch share and no other launch has; may be empty. With it, a
  // rank that reaches another launch's store is told so instead of joining it.
  std::string run_id;
  // Which interfaces the tcp transport uses, as net/interface.h describes; empty for the route
  // to rank 0.
  std::string interfaces;
  // Connections for data between each two ranks, up to kMostTcpStreams; 0 lets the transport
  // choose. Rank 0's value counts.
  int tcp_streams = 0;
  // The GPU of this rank (as CUDA numbers them), to which a group over NCCL is bound for its whole
  // life; -1 is none. OptionsFromEnvironment takes LOCAL_RANK. Unused by other transports.
  int device = -1;
  // File name of NCCL, with a folder where the loader does not look.
  std::string nccl_library = "libnccl.so.2";
  // The algorithm to use wherever it can do the operation ("ring"), or one for each operation
  // ("all_reduce=ring:16,broadcast=double_tree", see comm/tuner/choice.h); empty or "auto" leaves
  // the choice to cost. Equal on all ranks.
  std::string algorithm;
  // Files of measured tables that the choice goes by, separated by commas, one for each transport
  // (see comm/tuner/table.h); built in ones for the rest. Equal in content on all ranks.
  std::string tuning;
  // Names this group among those formed through one store.
  std::string group = "world";

  // The longest a rank waits for the others: to form the group, and then in each operation.
  absl::Duration timeout = absl::Seconds(60);
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_OPTIONS_H_
