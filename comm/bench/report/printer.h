// What rank 0 prints while rows come in.
#ifndef PLINTH_COMM_BENCH_REPORT_PRINTER_H_
#define PLINTH_COMM_BENCH_REPORT_PRINTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plinth/comm/bench/report/report.h"

namespace plinth::comm {

// The table as it grows, or JSON at the end, to stdout. Without `prints` it only counts.
class Printer {
 public:
  Printer(bool prints, bool json) : prints_(prints), json_(json) {}

  // Only the first of several groups counts: the head is printed once.
  void Begin(const RunInfo& info);
  void Add(Row row);
  void End();
  int64_t wrong() const { return WrongElements(rows_); }

 private:
  void Print(const std::string& table);

  const bool prints_;
  const bool json_;
  std::optional<RunInfo> info_;
  std::vector<Row> rows_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_BENCH_REPORT_PRINTER_H_
