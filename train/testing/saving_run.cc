#include "plinth/train/testing/saving_run.h"

#include <cstdint>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plinth/train/testing/process.h"
#include "plinth/train/testing/tiny_run.h"

namespace plinth::train::testing {

config::RunConfig MakeSavingRun(const std::string& dir) {
  config::RunConfig config = MakeTinyRun(dir);
  config.mutable_train()->set_steps(150);
  config.mutable_train()->set_checkpoint_every(5);
  config.mutable_train()->set_eval_every(5);
  return config;
}

void ExpectEachStepOnce(const config::RunConfig& config) {
  std::istringstream lines(ReadText(config.train().run_dir() + "/metrics.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.rfind(absl::StrCat("{\"step\":", ++step, ","), 0), 0u) << line;
    EXPECT_EQ(line.find("\"eval_loss\":") != std::string::npos, step % 5 == 0) << line;
  }
  EXPECT_EQ(step, config.train().steps());
}

}  // namespace plinth::train::testing
