#include "plinth/comm/bench/report/printer.h"

#include <cstdio>
#include <utility>

namespace plinth::comm {

void Printer::Begin(const RunInfo& info) {
  if (info_.has_value()) return;
  info_ = info;
  Print(TableHead(info));
}

void Printer::Add(Row row) {
  if (rows_.empty() || rows_.back().shape.op != row.shape.op ||
      rows_.back().transport != row.transport) {
    Print(SectionHead(*info_, row));
  }
  Print(TableLines(*info_, row));
  rows_.push_back(std::move(row));
}

void Printer::End() {
  if (!info_.has_value()) return;
  Print(TableFoot(*info_, rows_));
  if (prints_ && json_) std::fputs(ToJson(*info_, rows_).c_str(), stdout);
  std::fflush(stdout);
}

void Printer::Print(const std::string& table) {
  if (!prints_ || json_) return;
  std::fputs(table.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace plinth::comm
