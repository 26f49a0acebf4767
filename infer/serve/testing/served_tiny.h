// A tiny served model, from a checkpoint like any other.
#ifndef PLINTH_INFER_SERVE_TESTING_SERVED_TINY_H_
#define PLINTH_INFER_SERVE_TESTING_SERVED_TINY_H_

#include <memory>
#include <string>

#include "plinth/infer/load/served_model.h"

namespace plinth::infer::testing {

// Random weights, TinyTokenizer, 512 positions, one thread. Replaces what is in `run_dir`.
std::unique_ptr<ServedModel> ServedTiny(const std::string& run_dir);

}  // namespace plinth::infer::testing

#endif  // PLINTH_INFER_SERVE_TESTING_SERVED_TINY_H_
