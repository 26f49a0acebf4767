// A run for tests that kill it: it saves often, and its traces tell whether a step was lost.
#ifndef PLINTH_TRAIN_TESTING_SAVING_RUN_H_
#define PLINTH_TRAIN_TESTING_SAVING_RUN_H_

#include <string>

#include "plinth/config/run.pb.h"

namespace plinth::train::testing {

// MakeTinyRun with 150 steps, and an evaluation and a checkpoint every 5: about half of the time
// goes into saves.
config::RunConfig MakeSavingRun(const std::string& dir);

// A gtest failure unless the metrics of a finished run have each step once, in order, and each
// evaluation.
void ExpectEachStepOnce(const config::RunConfig& config);

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_SAVING_RUN_H_
