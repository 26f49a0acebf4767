#include "plinth/infer/serve/testing/served_tiny.h"

#include <filesystem>

#include "plinth/hardware/base/check.h"
#include "plinth/infer/load/test_checkpoint.h"
#include "plinth/infer/serve/testing/tiny_tokenizer.h"

namespace plinth::infer::testing {

std::unique_ptr<ServedModel> ServedTiny(const std::string& run_dir) {
  std::filesystem::remove_all(run_dir);
  const auto tokenizer = TinyTokenizer();
  CHECK_OK(WriteTestCheckpoint(run_dir, {.positions = 512, .tokenizer = tokenizer.get()}));
  config::HardwareConfig hardware;
  hardware.set_threads(1);
  auto served = ServedModel::Load(run_dir, hardware);
  CHECK_OK(served);
  return *std::move(served);
}

}  // namespace plinth::infer::testing
