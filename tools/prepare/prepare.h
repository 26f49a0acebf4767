// Text files to tokenised datasets, with the end of the text held out for evaluation.
//
//   <output>/train      dataset (storage/dataset) of all but the held-out text
//   <output>/eval       dataset of the held-out text, unless eval_bytes is 0
//   <output>/eval.txt   the held-out text itself, for comparison with compressors
#ifndef PLINTH_TOOLS_PREPARE_PREPARE_H_
#define PLINTH_TOOLS_PREPARE_PREPARE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::tools {

struct PrepareOptions {
  // Read in this order as one text; any bytes, UTF-8 or not. Each file is one document.
  std::vector<std::string> inputs;
  std::string tokenizer;  // path of a tokenizer.json
  std::string output;     // must not exist
  // The held-out text is the last `eval_bytes` bytes, less what precedes the first line that
  // starts in them. >= 0.
  int64_t eval_bytes = 0;
  // Special token after each document; empty = none.
  std::string separator;
  // Bytes that are encoded at a time. Blocks end at line ends, so that tokens do not depend
  // on this for the usual patterns (GPT-2, Llama 3), which end a piece there. > 0.
  int64_t block_bytes = 1 << 20;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of text; may be absent
  storage::Syscalls* syscalls = &storage::RealSyscalls();
};

struct SplitSize {
  int64_t bytes = 0;
  int64_t tokens = 0;  // separators included
};

struct PrepareResult {
  SplitSize train;
  SplitSize eval;
};

// Everything is written into ".tmp-<name>" beside `output` and renamed at the end: a run that
// fails or is killed leaves no `output` (and the next one removes what a killed one left).
// Memory   a few blocks, whatever the size of the text.
// Errors   kNotFound, kPermissionDenied, kInvalidArgument: inputs, tokenizer, sizes, each with
//          its path or flag; kAlreadyExists: output; kResourceExhausted: disk full; kDataLoss: an
//          input changed meanwhile.
absl::StatusOr<PrepareResult> Prepare(const PrepareOptions& options);

}  // namespace plinth::tools

#endif  // PLINTH_TOOLS_PREPARE_PREPARE_H_
