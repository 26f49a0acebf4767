// The parameters in a checkpoint, as models/loading wants them.
#ifndef PLINTH_INFER_LOAD_CHECKPOINT_SOURCE_H_
#define PLINTH_INFER_LOAD_CHECKPOINT_SOURCE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plinth/models/loading/load_parameters.h"
#include "plinth/storage/checkpoint/reader.h"

namespace plinth::infer {

// The tensors of the group "model" (storage/checkpoint/writer.h); an optimizer's are left
// out. Elements are f32. Borrows the reader.
class CheckpointSource : public models::ParameterSource {
 public:
  explicit CheckpointSource(const storage::CheckpointReader& reader) : reader_(reader) {}

  std::string description() const override { return "checkpoint " + reader_.dir(); }
  std::vector<models::SourceTensor> tensors() const override;
  // kUnimplemented for another element type.
  absl::Status Read(const std::string& name, std::span<float> elements) override;

 private:
  const storage::CheckpointReader& reader_;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_LOAD_CHECKPOINT_SOURCE_H_
