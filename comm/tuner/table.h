// Costs of a transport: built in, or measured and kept in a small text file.
//
//   # two nodes, 25 GbE, 2026-03
//   plinth comm table 1
//   transport        tcp
//   local_alpha_us   9.5
//   local_mb_per_s   3200
//   remote_alpha_us  21
//   remote_mb_per_s  2750
//   direct_alpha_us  2
//   direct_mb_per_s  6000
//   message_us       4
//   reduce_mb_per_s  9000
//
// All ranks of a group must use the same table, as they choose algorithms by it.
#ifndef PLINTH_COMM_TUNER_TABLE_H_
#define PLINTH_COMM_TUNER_TABLE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/comm/tuner/cost.h"

namespace plinth::comm {

struct CostTable {
  std::string transport;  // whose costs these are: "shm"
  CostModel model;

  bool operator==(const CostTable&) const = default;
};

// For "mem", "shm", "tcp" and "mpi"; any other name gets tcp's costs. The numbers are rounded
// ones of a current server, there to rank algorithms by: alpha and bandwidth of mem and shm are
// one message through a ring and two copies, of tcp one over loopback (local) and over 10 Gbit/s
// Ethernet (remote). To measure a machine, time messages of growing size between two ranks and
// fit them (fit.h).
CostTable DefaultTable(std::string_view transport);

// The format above: the first line that is not blank or a # comment names it, then each line is a
// name and its value, every name once, in any order. kInvalidArgument with the line's number for
// anything else, values that are not finite, negative times and bandwidths that are not positive.
// Any bytes are fit to parse.
absl::StatusOr<CostTable> ParseTable(std::string_view text);
// What ParseTable reads back as the same table, to the bit.
std::string FormatTable(const CostTable& table);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TUNER_TABLE_H_
