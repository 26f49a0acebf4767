#include "plinth/train/loop/checkpoint.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/checkpoint/writer.h"

namespace plinth::train {
namespace {

struct NamedView {
  const char* group;
  std::string name;
  TensorView view;
};

std::vector<NamedView> StateTensors(const TrainStep& step) {
  std::vector<NamedView> tensors;
  for (const FlatLayout::Slot& slot : step.layout().slots()) {
    const std::string& name = slot.parameter->name();
    tensors.push_back({"model", name, slot.parameter->value().view()});
    tensors.push_back({"optim", name + ".m", step.optimizer().m(slot)});
    tensors.push_back({"optim", name + ".v", step.optimizer().v(slot)});
  }
  return tensors;
}

std::vector<int64_t> Dims(const TensorView& view) {
  return {view.shape.dims().begin(), view.shape.dims().end()};
}

std::string DimsText(const std::vector<int64_t>& dims) { return Shape(std::span(dims)).ToString(); }

}  // namespace

absl::Status SaveCheckpoint(const std::string& run_dir, const storage::TrainerState& state,
                            const std::string& tokenizer_json, const TrainStep& step,
                            Stream& stream, storage::Syscalls& syscalls) {
  ASSIGN_OR_RETURN(std::unique_ptr<storage::CheckpointWriter> writer,
                   storage::CheckpointWriter::Create(
                       {.run_dir = run_dir, .step = state.step, .syscalls = &syscalls}));
  const std::vector<NamedView> tensors = StateTensors(step);
  const bool direct = stream.device().host_accessible();
  std::vector<std::vector<std::byte>> copies(direct ? 0 : tensors.size());
  for (size_t i = 0; i < copies.size(); ++i) {
    copies[i].resize(static_cast<size_t>(tensors[i].view.bytes()));
    stream.CopyOut(copies[i].data(), tensors[i].view.data, tensors[i].view.bytes());
  }
  RETURN_IF_ERROR(stream.Synchronize()) << "copying the state";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& view = tensors[i].view;
    const auto* data = direct ? static_cast<const std::byte*>(view.data) : copies[i].data();
    const std::vector<int64_t> dims = Dims(view);
    writer->Add(tensors[i].group, {.name = tensors[i].name,
                                   .dtype = view.dtype,
                                   .shape = dims,
                                   .box = storage::Box::Whole(dims),
                                   .bytes = {data, static_cast<size_t>(view.bytes())}});
  }
  writer->AddTokenizerFile("tokenizer.json", tokenizer_json);
  return writer->Commit(state);
}

absl::Status RestoreCheckpoint(const storage::CheckpointReader& reader, const TrainStep& step,
                               Stream& stream) {
  const std::vector<NamedView> tensors = StateTensors(step);
  for (const NamedView& tensor : tensors) {
    const storage::CheckpointTensor* stored = reader.Find(tensor.name);
    const std::vector<int64_t> dims = Dims(tensor.view);
    if (stored == nullptr || stored->shape != dims || stored->dtype != tensor.view.dtype) {
      const std::string got =
          stored == nullptr
              ? "absent"
              : absl::StrCat(std::string(DTypeName(stored->dtype)), " ", DimsText(stored->shape));
      return absl::FailedPreconditionError(
          absl::StrCat(reader.dir(), ": tensor \"", tensor.name, "\" is ", got,
                       ", but the configured model has f32 ", DimsText(dims)));
    }
  }
  std::vector<std::byte> bytes;
  for (const NamedView& tensor : tensors) {
    bytes.resize(static_cast<size_t>(tensor.view.bytes()));
    RETURN_IF_ERROR(reader.Read(tensor.name, bytes)) << reader.dir();
    stream.CopyIn(tensor.view.data, bytes.data(), tensor.view.bytes());
  }
  return stream.Synchronize();
}

}  // namespace plinth::train
