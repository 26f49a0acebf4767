#include "plinth/comm/program/print.h"

#include <vector>

#include "gtest/gtest.h"
#include "plinth/comm/call/fingerprint.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/comm/program/problem.h"
#include "plinth/comm/program/program.h"

namespace plinth::comm {
namespace {

TEST(PrintProgram, SaysWhatARankDoes) {
  const Problem problem{OpKind::kAllReduce, 3};
  EXPECT_EQ(PrintProgram(GenerateProgram(*FindAlgorithm("ring"), problem, 0)),
            "3 blocks, 2 scratch slots\n"
            "round 0\n"
            "  send input 2 to 1\n"
            "  receive scratch 0 = block 1 from 2\n"
            "  partial scratch 1 = block 1 = reduce(input 1, scratch 0 = block 1)\n"
            "round 1\n"
            "  send partial scratch 1 = block 1 to 1\n"
            "  receive partial scratch 0 = block 0 from 2\n"
            "  output 0 = reduce(input 0, partial scratch 0 = block 0)\n"
            "round 2\n"
            "  send output 0 to 1\n"
            "  receive output 2 from 2\n"
            "round 3\n"
            "  send output 2 to 1\n"
            "  receive output 1 from 2\n");
}

TEST(PrintTable, ShowsAllRanksAtOnce) {
  const Problem problem{OpKind::kAllReduce, 3};
  EXPECT_EQ(PrintTable(GenerateAllPrograms(*FindAlgorithm("ring"), problem)),
            "round  rank 0  rank 1  rank 2\n"
            "0      2>1     0>2     1>0\n"
            "1      1*>1    2*>2    0*>0\n"
            "2      0>1     1>2     2>0\n"
            "3      2>1     0>2     1>0\n");
  const Problem scatter{OpKind::kScatter, 4, 1};
  EXPECT_EQ(PrintTable(GenerateAllPrograms(*FindAlgorithm("binomial"), scatter)),
            "round  rank 0  rank 1  rank 2  rank 3\n"
            "0      .       3,0>3   .       .\n"
            "1      .       2>2     .       0>0\n");
}

TEST(PrintTable, NoRanks) { EXPECT_EQ(PrintTable({}), "round\n"); }

}  // namespace
}  // namespace plinth::comm
