#include "plinth/comm/program/print.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plinth::comm {
namespace {

// "0>1 2*>1 3>2": blocks for one peer together, "0,2*>1 3>2".
std::string SendsOf(const Round& round) {
  std::string text;
  for (size_t i = 0; i < round.sends.size(); ++i) {
    const SendStep& send = round.sends[i];
    const bool more = i > 0 && round.sends[i - 1].peer == send.peer;
    absl::StrAppend(&text, more ? "," : (i > 0 ? " " : ""), send.from.block,
                    send.from.partial ? "*" : "");
    const bool last = i + 1 == round.sends.size() || round.sends[i + 1].peer != send.peer;
    if (last) absl::StrAppend(&text, ">", send.peer);
  }
  return text.empty() ? "." : text;
}

void AppendRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
               std::string& out) {
  std::string row;
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&row, cells[i], std::string(widths[i] + 2 - cells[i].size(), ' '));
  }
  row.resize(row.find_last_not_of(' ') + 1);
  absl::StrAppend(&out, row, "\n");
}

}  // namespace

std::string ToString(const BlockRef& ref) {
  switch (ref.space) {
    case Space::kInput:
      return absl::StrCat("input ", ref.block);
    case Space::kOutput:
      return absl::StrCat("output ", ref.block);
    case Space::kScratch:
      break;
  }
  return absl::StrCat(ref.partial ? "partial " : "", "scratch ", ref.slot, " = block ", ref.block);
}

std::string ToString(const SendStep& step) {
  return absl::StrCat("send ", ToString(step.from), " to ", step.peer);
}

std::string ToString(const ReceiveStep& step) {
  return absl::StrCat("receive ", ToString(step.to), " from ", step.peer);
}

std::string ToString(const ComputeStep& step) {
  std::vector<std::string> sources;
  for (const BlockRef& source : step.from) sources.push_back(ToString(source));
  const char* what = "reduce";
  if (step.from.size() == 1) what = step.from[0].partial == step.to.partial ? "copy" : "finish";
  return absl::StrCat(ToString(step.to), " = ", what, "(", absl::StrJoin(sources, ", "), ")");
}

std::string PrintProgram(const RankProgram& program) {
  std::string text = absl::StrCat(program.blocks, program.blocks == 1 ? " block, " : " blocks, ",
                                  program.scratch_slots, " scratch slots\n");
  for (size_t r = 0; r < program.rounds.size(); ++r) {
    const Round& round = program.rounds[r];
    absl::StrAppend(&text, "round ", r, "\n");
    for (const SendStep& step : round.sends) absl::StrAppend(&text, "  ", ToString(step), "\n");
    for (const ReceiveStep& step : round.receives) {
      absl::StrAppend(&text, "  ", ToString(step), "\n");
    }
    for (const ComputeStep& step : round.computes) {
      absl::StrAppend(&text, "  ", ToString(step), "\n");
    }
  }
  return text;
}

std::string PrintTable(std::span<const RankProgram> programs) {
  std::vector<std::vector<std::string>> rows(1, {"round"});
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    rows[0].push_back(absl::StrCat("rank ", rank));
  }
  for (size_t r = 0; !programs.empty() && r < programs[0].rounds.size(); ++r) {
    std::vector<std::string> row = {absl::StrCat(r)};
    for (const RankProgram& program : programs) row.push_back(SendsOf(program.rounds[r]));
    rows.push_back(std::move(row));
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) AppendRow(row, widths, text);
  return text;
}

}  // namespace plinth::comm
