// For the Python tests: writes a run with a tiny random model to the directory argv[1].
#include <iostream>

#include "plinth/infer/load/test_checkpoint.h"
#include "plinth/infer/serve/testing/tiny_tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_checkpoint DIRECTORY\n";
    return 1;
  }
  const auto tokenizer = plinth::infer::testing::TinyTokenizer();
  // Deep enough that a reply takes a while and can be watched.
  const absl::Status status = plinth::infer::WriteTestCheckpoint(
      argv[1], {.layers = 32, .positions = 2048, .tokenizer = tokenizer.get(), .wordy = true});
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
