#include "plinth/comm/bench/report/report.h"

#include <boost/json.hpp>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/reduce/reduce.h"

namespace plinth::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunInfo TwoRanks(std::string peer) {
  RunInfo info{.ranks = 2, .hosts = {"box"}, .cpus = 2, .buffers = "private"};
  info.peer = std::move(peer);
  info.peer_title = "Open MPI";
  return info;
}

// 4 MB in 2 ms is 2 GB/s; with four ranks an all_reduce has 1.5 times that on each link.
Row FourRankRow() {
  Row row;
  row.shape = {BenchOp::kAllReduce, DType::kF32, ReduceOp::kSum, -1, 1000000, 4};
  row.transport = "shm";
  row.algorithm = "ring";
  row.out_of_place = Cell{.ours = {{.median_us = 2000, .batches = 9, .disturbed = 1}, 0}};
  return row;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  return lines;
}

// Every figure ends where its title ends.
void ExpectAligned(const RunInfo& info, const Row& row, const std::vector<std::string>& titles) {
  const std::vector<std::string> head = Lines(SectionHead(info, row));
  const std::string& names = head[head.size() - 2];
  for (const std::string& line : Lines(TableLines(info, row))) {
    for (const std::string& title : titles) {
      const size_t end = names.find(title) + title.size();
      ASSERT_LE(end, line.size()) << title;
      EXPECT_NE(line[end - 1], ' ') << title << "\n" << names << "\n" << line;
      EXPECT_EQ(line[end], ' ') << title << "\n" << names << "\n" << line;
    }
    EXPECT_EQ(line.find(row.algorithm), names.find("algorithm")) << names << "\n" << line;
  }
}

TEST(Report, TableShowsBandwidthsUnderTheirTitles) {
  const RunInfo info = TwoRanks("");
  const Row row = FourRankRow();
  EXPECT_EQ(TableLines(info, row),
            "     4000000      1000000    f32    sum    -1      2000    2.00    3.00      0"
            "         -       -       -    n/a  ring\n");
  ExpectAligned(info, row,
                {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"});
  const std::string foot = TableFoot(info, {row});
  EXPECT_THAT(foot, HasSubstr("average bus bandwidth: 3.000 GB/s"));
  EXPECT_THAT(foot, HasSubstr("wrong elements: 0 (all results checked)"));
  EXPECT_THAT(foot, HasSubstr("during 1 of 9 batches"));
}

TEST(Report, ComparesLineByLine) {
  RunInfo info = TwoRanks("Open MPI v4");
  info.probe = true;
  Row row = FourRankRow();
  row.probe_gbps = 6;
  row.out_of_place->theirs = Result{{.median_us = 4000, .batches = 9}, 5};
  row.out_of_place->ratio = 2;
  row.in_place = Cell{.ours = {{.median_us = 1000}, 0}};
  ExpectAligned(info, row,
                {"size", "count", "type", "redop", "root", "place", "time", "busbw", "ratio",
                 "#wrong", "probe", "of"});
  const std::vector<std::string> lines = Lines(TableLines(info, row));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("  out      2000    3.00      4000    1.50    2.00      5"));
  EXPECT_THAT(
      lines[1],
      HasSubstr("   in      1000    6.00         -       -       -      0    6.00   100%  ring"));
  EXPECT_THAT(TableFoot(info, {row}), HasSubstr("ratio to Open MPI v4: 2.00"));
  EXPECT_EQ(WrongElements({row}), 5);
}

TEST(Report, SaysWhatABindingCosts) {
  RunInfo info = TwoRanks("gloo");
  info.peer_title = "gloo";
  EXPECT_THAT(TableHead(info), Not(HasSubstr("Python")));
  info.peer_binding_us = 18.7;
  EXPECT_THAT(TableHead(info), HasSubstr("what Python adds to each call: 18.7 us"));
  EXPECT_THAT(SectionHead(info, FourRankRow()), HasSubstr("Plinth               gloo\n"));
  const boost::json::value json = boost::json::parse(ToJson(info, {}));
  EXPECT_EQ(json.at("peer_binding_us").as_double(), 18.7);
}

TEST(Report, JsonHoldsTheSameFigures) {
  Row row = FourRankRow();
  row.out_of_place->theirs = Result{{.median_us = 4000}, 0};
  row.out_of_place->ratio = 2;
  const boost::json::value json = boost::json::parse(ToJson(TwoRanks("Open MPI v4"), {row}));
  EXPECT_EQ(json.at("schema").as_string(), "plinth.bench.comm.v2");
  EXPECT_EQ(json.at("ranks").as_int64(), 2);
  EXPECT_EQ(json.at("hosts").as_array().at(0).as_string(), "box");
  const boost::json::value& only = json.at("rows").as_array().at(0);
  EXPECT_EQ(only.at("op").as_string(), "all_reduce");
  EXPECT_EQ(only.at("bytes").as_int64(), 4000000);
  EXPECT_EQ(only.at("bus_factor").as_double(), 1.5);
  EXPECT_EQ(only.at("out_of_place").at("busbw_gb_per_s").as_double(), 3);
  EXPECT_EQ(only.at("out_of_place").at("peer_ratio").as_double(), 2);
  EXPECT_TRUE(only.at("in_place").is_null());
  EXPECT_EQ(json.at("wrong").as_int64(), 0);
}

}  // namespace
}  // namespace plinth::comm
