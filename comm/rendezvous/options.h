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
};

// The default is a world of one. Usually filled by OptionsFromEnvironment.
struct CommOptions {
  int rank = 0;  // [0, size)
  int size = 1;
  int local_rank = 0;  // place among the ranks of this host, [0, local_size)
  int local_size = 1;
  TransportKind transport = TransportKind::kAuto;

  // Rank 0 listens here while a group forms; the others connect. Unused when size is 1.
  std::string store_host = "127.0.0.1";
  int store_port = 0;
  // A text that all ranks of one launch share and no other launch has; may be empty. With it, a
  // rank that reaches another launch's store is told so instead of joining it.
  std::string run_id;
  // Names this group among those formed through one store.
  std::string group = "world";

  // The longest a rank waits for the others: to form the group, and then in each operation.
  absl::Duration timeout = absl::Seconds(60);
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_OPTIONS_H_
