// A run small enough to train in a test: datasets, tokenizer file and config in one directory.
#ifndef PLINTH_TRAIN_TESTING_TINY_RUN_H_
#define PLINTH_TRAIN_TESTING_TINY_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plinth/config/run.pb.h"

namespace plinth::train::testing {

// Makes `dir` with tokens that repeat in a pattern, so that a few steps lower the loss: 400 to
// train on, 90 held out, vocabulary 11.
//
// The config trains the small Llama for 40 steps of 4 samples of 8 tokens in micro-batches of
// 1, on one thread, writing to dir + "/run". Complete and valid.
config::RunConfig MakeTinyRun(const std::string& dir);

// All tensors of a run's newest checkpoint, by name, as bytes; empty when there is none.
std::map<std::string, std::string> NewestTensors(const std::string& run_dir);

// Step of the newest complete checkpoint, all checksums compared; -1 when there is none.
int64_t NewestStep(const std::string& run_dir);

}  // namespace plinth::train::testing

#endif  // PLINTH_TRAIN_TESTING_TINY_RUN_H_
