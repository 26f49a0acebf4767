#include "plinth/comm/bench/report/report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

namespace json = boost::json;

// About four significant digits.
std::string TimeText(double us) {
  const int digits = us < 10 ? 2 : us < 1000 ? 1 : 0;
  return absl::StrFormat("%.*f", digits, us);
}

std::string GbpsText(double gbps) { return absl::StrFormat("%.*f", gbps < 100 ? 2 : 1, gbps); }

std::string ReduceText(const Shape& shape) {
  return shape.reduce == ReduceOp::kNone ? "none" : std::string(ReduceOpName(shape.reduce));
}

std::string ShapeColumns(const Shape& shape) {
  return absl::StrFormat("%12d %12d %6s %6s %5d", ShapeBytes(shape), shape.count,
                         std::string(DTypeName(shape.dtype)), ReduceText(shape), shape.root);
}

constexpr char kShapeNames[] = "#       size        count   type  redop  root";
constexpr char kShapeUnits[] = "#        (B)   (elements)                    ";
constexpr char kShapeBlank[] = "#                                            ";

std::string ResultColumns(const Shape& shape, const std::optional<Cell>& cell) {
  if (!cell.has_value()) return absl::StrFormat(" %9s %7s %7s %6s", "-", "-", "-", "n/a");
  const double us = cell->ours.timing.median_us;
  return absl::StrFormat(" %9s %7s %7s %6d", TimeText(us), GbpsText(AlgorithmBandwidth(shape, us)),
                         GbpsText(BusBandwidth(shape, us)), cell->ours.wrong);
}

// Percent of the probe that the better placement reaches.
std::string ProbeColumns(const RunInfo& info, const Row& row) {
  if (!info.probe) return "";
  if (row.probe_gbps <= 0) return absl::StrFormat(" %7s %6s", "-", "-");
  double best = 0;
  for (const std::optional<Cell>& cell : {row.out_of_place, row.in_place}) {
    if (cell) best = std::max(best, BusBandwidth(row.shape, cell->ours.timing.median_us));
  }
  return absl::StrFormat(" %7s %5.0f%%", GbpsText(row.probe_gbps), 100 * best / row.probe_gbps);
}

// A line of the comparison: one placement, both libraries.
std::string VersusLine(const RunInfo& info, const Row& row, const char* place, const Cell& cell) {
  const auto side = [&](const Result& result) {
    const double us = result.timing.median_us;
    return absl::StrFormat(" %9s %7s", TimeText(us), GbpsText(BusBandwidth(row.shape, us)));
  };
  std::string line =
      absl::StrCat(ShapeColumns(row.shape), absl::StrFormat(" %5s", place), side(cell.ours));
  if (cell.theirs) {
    absl::StrAppend(
        &line, side(*cell.theirs),
        absl::StrFormat(" %7.2f %6d", cell.ratio, cell.ours.wrong + cell.theirs->wrong));
  } else {
    absl::StrAppend(&line, absl::StrFormat(" %9s %7s %7s %6d", "-", "-", "-", cell.ours.wrong));
  }
  return absl::StrCat(line, ProbeColumns(info, row), "  ", row.algorithm, "\n");
}

// All cells that were measured.
std::vector<const Cell*> Cells(const std::vector<Row>& rows) {
  std::vector<const Cell*> cells;
  for (const Row& row : rows) {
    if (row.out_of_place) cells.push_back(&*row.out_of_place);
    if (row.in_place) cells.push_back(&*row.in_place);
  }
  return cells;
}

double AverageBusBandwidth(const std::vector<Row>& rows) {
  double sum = 0;
  int count = 0;
  for (const Row& row : rows) {
    for (const std::optional<Cell>& cell : {row.out_of_place, row.in_place}) {
      if (!cell || row.shape.op == BenchOp::kBarrier) continue;
      sum += BusBandwidth(row.shape, cell->ours.timing.median_us);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

json::value ResultJson(const Shape& shape, const Result& result) {
  const Timing& t = result.timing;
  return json::object{{"median_us", t.median_us},
                      {"p10_us", t.p10_us},
                      {"p90_us", t.p90_us},
                      {"algbw_gb_per_s", AlgorithmBandwidth(shape, t.median_us)},
                      {"busbw_gb_per_s", BusBandwidth(shape, t.median_us)},
                      {"wrong", result.wrong},
                      {"batches", t.batches},
                      {"disturbed", t.disturbed}};
}

json::value CellJson(const Shape& shape, const std::optional<Cell>& cell) {
  if (!cell) return nullptr;
  json::value object = ResultJson(shape, cell->ours);
  if (cell->theirs) {
    object.as_object()["peer"] = ResultJson(shape, *cell->theirs);
    object.as_object()["peer_ratio"] = cell->ratio;
  }
  return object;
}

json::value RowJson(const Row& row) {
  json::object object = {{"op", std::string(BenchOpName(row.shape.op))},
                         {"transport", row.transport},
                         {"algorithm", row.algorithm},
                         {"dtype", std::string(DTypeName(row.shape.dtype))},
                         {"redop", ReduceText(row.shape)},
                         {"root", row.shape.root},
                         {"bytes", ShapeBytes(row.shape)},
                         {"count", row.shape.count},
                         {"bus_factor", BusFactor(row.shape.op, row.shape.ranks)},
                         {"out_of_place", CellJson(row.shape, row.out_of_place)},
                         {"in_place", CellJson(row.shape, row.in_place)}};
  if (row.probe_gbps > 0) object["probe_busbw_gb_per_s"] = row.probe_gbps;
  return object;
}

}  // namespace

double AlgorithmBandwidth(const Shape& shape, double us) {
  return us <= 0 ? 0 : static_cast<double>(ShapeBytes(shape)) / (us * 1e3);
}

double BusBandwidth(const Shape& shape, double us) {
  return AlgorithmBandwidth(shape, us) * BusFactor(shape.op, shape.ranks);
}

std::string TableHead(const RunInfo& info) {
  const auto counted = [](int64_t n, const char* what) {
    return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
  };
  std::string head = absl::StrCat("# Plinth //comm:bench: ", counted(info.ranks, "rank"), " on ",
                                  counted(static_cast<int64_t>(info.hosts.size()), "host"), " (",
                                  absl::StrJoin(info.hosts, ", "), "), ", counted(info.cpus, "CPU"),
                                  ", ", info.buffers, " buffers\n");
  const bool warm = info.plan.batch_length > absl::ZeroDuration();
  const std::string length = warm ? absl::FormatDuration(info.plan.batch_length) : "one call, cold";
  absl::StrAppend(&head, "# median of ", info.plan.batches,
                  info.plan.batches == 1 ? " batch of " : " batches of ", length,
                  "; 1 GB is 1e9 bytes\n");
  if (!info.peer.empty()) {
    absl::StrAppend(&head, "# in turns with ", info.peer,
                    " on the same ranks; ratio is its time / ours, above 1: ours is faster\n");
  }
  if (info.peer_binding_us > 0) {
    absl::StrAppend(&head, "# its times hold what Python adds to each call: ",
                    TimeText(info.peer_binding_us), " us, measured in a world of one\n");
  }
  return head;
}

std::string SectionHead(const RunInfo& info, const Row& row) {
  const std::string op(BenchOpName(row.shape.op));
  std::string head = absl::StrFormat("#\n# %s over %s\n", op, row.transport);
  const std::string probe_names = info.probe ? "   probe     of" : "";
  const std::string probe_units = info.probe ? "  (GB/s)  probe" : "";
  if (info.peer.empty()) {
    const std::string names = "      time   algbw   busbw #wrong";
    const std::string units = "      (us)  (GB/s)  (GB/s)       ";
    absl::StrAppend(&head, kShapeBlank,
                    "           out-of-place                        in-place\n");
    absl::StrAppend(&head, kShapeNames, names, names, probe_names, "  algorithm\n");
    absl::StrAppend(&head, kShapeUnits, units, units, probe_units, "\n");
  } else {
    absl::StrAppend(&head, kShapeBlank, "              Plinth",
                    absl::StrFormat("%19s\n", info.peer_title));
    absl::StrAppend(&head, kShapeNames, " place      time   busbw      time   busbw   ratio #wrong",
                    probe_names, "  algorithm\n");
    absl::StrAppend(&head, kShapeUnits, "            (us)  (GB/s)      (us)  (GB/s)               ",
                    probe_units, "\n");
  }
  return head;
}

std::string TableLines(const RunInfo& info, const Row& row) {
  if (info.peer.empty()) {
    return absl::StrCat(ShapeColumns(row.shape), ResultColumns(row.shape, row.out_of_place),
                        ResultColumns(row.shape, row.in_place), ProbeColumns(info, row), "  ",
                        row.algorithm, "\n");
  }
  std::string lines;
  if (row.out_of_place) lines += VersusLine(info, row, "out", *row.out_of_place);
  if (row.in_place) lines += VersusLine(info, row, "in", *row.in_place);
  return lines;
}

std::string TableFoot(const RunInfo& info, const std::vector<Row>& rows) {
  int batches = 0, disturbed = 0, compared = 0, slower = 0;
  double log_ratios = 0;
  for (const Cell* cell : Cells(rows)) {
    batches += cell->ours.timing.batches;
    disturbed += cell->ours.timing.disturbed;
    if (!cell->theirs) continue;
    ++compared;
    slower += cell->ratio < 1;
    log_ratios += std::log(cell->ratio);
  }
  std::string foot =
      absl::StrFormat("#\n# average bus bandwidth: %.3f GB/s\n", AverageBusBandwidth(rows));
  const int64_t wrong = WrongElements(rows);
  absl::StrAppend(&foot, "# wrong elements: ", wrong,
                  wrong == 0 ? " (all results checked)\n" : "\n");
  if (compared > 0) {
    absl::StrAppend(
        &foot, absl::StrFormat("# ratio to %s: %.2f in the geometric mean of %d; below 1 in %d\n",
                               info.peer, std::exp(log_ratios / compared), compared, slower));
  }
  if (!info.plan.cpu_for_each_rank) {
    absl::StrAppend(&foot, "# more ranks than CPUs: times include waiting for one\n");
  } else if (disturbed > 0) {
    absl::StrAppend(&foot, "# other programs ran on our CPUs during ", disturbed, " of ", batches,
                    " batches; left out where enough others remained\n");
  }
  return foot;
}

std::string ToJson(const RunInfo& info, const std::vector<Row>& rows) {
  json::array hosts(info.hosts.begin(), info.hosts.end());
  json::array row_values;
  for (const Row& row : rows) row_values.push_back(RowJson(row));
  json::object object = {
      {"schema", "plinth.bench.comm.v2"},
      {"ranks", info.ranks},
      {"hosts", hosts},
      {"cpus", info.cpus},
      {"cpu_for_each_rank", info.plan.cpu_for_each_rank},
      {"buffers", info.buffers},
      {"peer", info.peer.empty() ? json::value(nullptr) : json::value(info.peer)},
      {"peer_binding_us", info.peer_binding_us},
      {"batch_ms", absl::ToDoubleMilliseconds(info.plan.batch_length)},
      {"rows", row_values},
      {"average_busbw_gb_per_s", AverageBusBandwidth(rows)},
      {"wrong", WrongElements(rows)}};
  return json::serialize(object) + "\n";
}

int64_t WrongElements(const std::vector<Row>& rows) {
  int64_t wrong = 0;
  for (const Cell* cell : Cells(rows)) {
    wrong += cell->ours.wrong + (cell->theirs ? cell->theirs->wrong : 0);
  }
  return wrong;
}

}  // namespace plinth::comm
