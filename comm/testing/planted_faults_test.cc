// Planted faults over eight ranks: threads over mem, processes over shm and tcp. ./test runs the
// first forty; all three hundred, which take some minutes:
//   bazel test //comm/testing:planted_faults_300_test
#include "plinth/comm/testing/planted_faults.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm::testing {
namespace {

constexpr int kAtOnce = 3;  // groups of eight, which mostly sleep

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path());
  }
  return names;
}

std::string RunOne(int index) {
  std::string directory = absl::StrCat(::testing::TempDir(), "plantedXXXXXX");
  CHECK(mkdtemp(directory.data()) != nullptr);
  const std::string wrong = RunPlantedFault(FaultOf(index), directory);
  std::filesystem::remove_all(directory);
  return wrong;
}

// A number from the environment, for trying a few by hand.
int Number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST(PlantedFaults, AreAllNamedByEveryRankAndByTheDoctor) {
  const int first = Number("PLINTH_FIRST_FAULT", 0);
  const int end = first + Number("PLINTH_FAULTS", PLANTED_FAULTS);
  const std::set<std::string> before = NamesIn("/dev/shm");
  int failed = 0;
  for (int batch = first; batch < end; batch += kAtOnce) {
    const int size = std::min(kAtOnce, end - batch);
    const auto outcomes = RunProcesses(size, [&](int i) { return RunOne(batch + i); });
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.report, "");
      EXPECT_EQ(outcome.signal, 0);
      failed += outcome.report.empty() && outcome.signal == 0 ? 0 : 1;
    }
  }
  std::printf("%d of %d planted faults named by every rank and by the doctor\n",
              end - first - failed, end - first);
  // Sockets end with their processes; segments have no name, and so none may appear.
  for (const std::string& name : NamesIn("/dev/shm")) {
    EXPECT_EQ(before.count(name), 1u) << "left behind: " << name;
  }
}

}  // namespace
}  // namespace plinth::comm::testing
