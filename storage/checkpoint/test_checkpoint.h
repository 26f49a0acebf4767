// For tests: a small checkpoint whose every byte follows from its step.
#ifndef PLINTH_STORAGE_CHECKPOINT_TEST_CHECKPOINT_H_
#define PLINTH_STORAGE_CHECKPOINT_TEST_CHECKPOINT_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/box.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/checkpoint/trainer_state.h"
#include "plinth/storage/checkpoint/writer.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// An empty directory of its own for the running test.
inline std::string FreshRunDir() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string dir = ::testing::TempDir() + "/" + info->test_suite_name() + "_" + info->name();
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

inline TrainerState TestState(int64_t step) {
  TrainerState state;
  state.step = step;
  state.config_text = "model { layers: 2 }\n";
  state.rng_seed = 0xFEDCBA9876543210;
  state.cursor = {1, step * 8, 64, 0x8000000000000001};
  state.counters = {{"tokens", step * 512}};
  state.scalars = {{"best_loss", 1.0 / static_cast<double>(step + 1)}};
  return state;
}

// Rows x 256 floats, all `step`, and as many of the optimizer's, all -step.
inline absl::Status SaveTestCheckpoint(const std::string& run_dir, int64_t step, int64_t rows = 4,
                                       Syscalls& syscalls = RealSyscalls()) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointWriter> writer,
      CheckpointWriter::Create({.run_dir = run_dir, .step = step, .syscalls = &syscalls}));
  const std::vector<float> weights(rows * 256, static_cast<float>(step));
  const std::vector<float> moments(rows * 256, -static_cast<float>(step));
  const std::vector<int64_t> shape = {rows, 256};
  writer->Add("model",
              {"w", DType::kF32, shape, Box::Whole(shape), std::as_bytes(std::span(weights))});
  writer->Add("optim",
              {"w.m", DType::kF32, shape, Box::Whole(shape), std::as_bytes(std::span(moments))});
  writer->AddTokenizerFile("tokenizer.json", "{\"step\": " + std::to_string(step) + "}");
  return writer->Commit(TestState(step));
}

// Checks that a reader gives back exactly what SaveTestCheckpoint stored.
inline absl::Status CheckTestCheckpoint(const CheckpointReader& reader) {
  RETURN_IF_ERROR(reader.Verify());
  const int64_t step = reader.state().step;
  if (reader.state() != TestState(step)) return absl::DataLossError("another state");
  for (const CheckpointTensor& tensor : reader.tensors()) {
    std::vector<float> values(Elements(tensor.shape));
    RETURN_IF_ERROR(reader.Read(tensor.name, std::as_writable_bytes(std::span(values))));
    const float expected = static_cast<float>(tensor.name == "w" ? step : -step);
    for (const float value : values) {
      if (value != expected) return absl::DataLossError(tensor.name + " holds other values");
    }
  }
  if (reader.tensors().size() != 2) return absl::DataLossError("other tensors");
  return reader.ReadTokenizerFile("tokenizer.json").status();
}

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_TEST_CHECKPOINT_H_
