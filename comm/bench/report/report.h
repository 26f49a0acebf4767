// The benchmark's results as a table for people and as JSON for programs.
#ifndef PLINTH_COMM_BENCH_REPORT_REPORT_H_
#define PLINTH_COMM_BENCH_REPORT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/sweep/measure.h"

namespace plinth::comm {

struct Result {
  Timing timing;
  int64_t wrong = 0;  // elements, over all ranks
};

// One way of placing the buffers: ours, and the peer's when there is one that can do it.
struct Cell {
  Result ours;
  std::optional<Result> theirs;
  double ratio = 0;  // theirs / ours, of the rounds' times; 0 without a peer
};

struct Row {
  Shape shape;
  std::string transport;
  std::string algorithm;  // what was chosen or pinned
  std::optional<Cell> out_of_place;
  std::optional<Cell> in_place;
  // Bus bandwidth of the shared-memory probe taken around this row; 0 without one.
  double probe_gbps = 0;
};

// What holds for all rows.
struct RunInfo {
  int ranks = 1;
  std::vector<std::string> hosts;  // each once, in order of their lowest rank
  int cpus = 0;                    // that rank 0 may use
  std::string buffers;             // "private" or "registered"
  std::string peer;                // "Open MPI v4.1.4"; empty without one
  std::string peer_title;          // above its columns: "Open MPI"
  double peer_binding_us = 0;      // of each of its calls; see Peer::binding_us
  bool probe = false;
  MeasurePlan plan;
};

// Bandwidths in 1e9 bytes per second.
double AlgorithmBandwidth(const Shape& shape, double us);
double BusBandwidth(const Shape& shape, double us);

// What is printed before all rows, before the rows of another operation or transport, for a row
// and after all. Lines end with a newline; those that hold no measurement start with '#'.
std::string TableHead(const RunInfo& info);
std::string SectionHead(const RunInfo& info, const Row& row);
std::string TableLines(const RunInfo& info, const Row& row);
std::string TableFoot(const RunInfo& info, const std::vector<Row>& rows);

// One object, schema plinth.bench.comm.v2.
std::string ToJson(const RunInfo& info, const std::vector<Row>& rows);

// Over all rows and both placements.
int64_t WrongElements(const std::vector<Row>& rows);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_REPORT_REPORT_H_
