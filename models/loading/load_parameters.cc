#include "plinth/models/loading/load_parameters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::models {
namespace {

// Names shown of each kind: a wrong architecture would otherwise list hundreds.
constexpr size_t kShown = 8;

std::string List(const char* title, const std::vector<std::string>& items) {
  const size_t shown = std::min(kShown, items.size());
  std::string text = absl::StrCat(items.size(), " ", title, ": ",
                                  absl::StrJoin(items.begin(), items.begin() + shown, ", "));
  if (shown < items.size()) absl::StrAppend(&text, " and ", items.size() - shown, " more");
  return text;
}

absl::Status CompareNames(const LanguageModel& model, const ParameterSource& source) {
  std::map<std::string, Shape> given;
  for (const SourceTensor& tensor : source.tensors()) given.emplace(tensor.name, tensor.shape);
  std::vector<std::string> missing, mismatched, extra;
  for (const Parameter* parameter : model.parameters()) {
    const auto it = given.find(parameter->name());
    if (it == given.end()) {
      missing.push_back(parameter->name());
      continue;
    }
    if (it->second != parameter->shape()) {
      mismatched.push_back(absl::StrCat(parameter->name(), " (expected ",
                                        parameter->shape().ToString(), ", got ",
                                        it->second.ToString(), ")"));
    }
    given.erase(it);
  }
  for (const auto& [name, shape] : given) extra.push_back(name);

  std::vector<std::string> problems;
  if (!missing.empty()) problems.push_back(List("missing", missing));
  if (!extra.empty()) problems.push_back(List("extra", extra));
  if (!mismatched.empty()) problems.push_back(List("of another shape", mismatched));
  if (problems.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      source.description(), ": tensors do not fit the model: ", absl::StrJoin(problems, "; ")));
}

}  // namespace

absl::Status LoadParameters(LanguageModel& model, ParameterSource& source,
                            CachingAllocator& allocator, Stream& stream) {
  RETURN_IF_ERROR(CompareNames(model, source));
  std::vector<float> elements;
  for (Parameter* parameter : model.parameters()) {
    elements.resize(static_cast<size_t>(parameter->shape().elements()));
    RETURN_IF_ERROR(source.Read(parameter->name(), elements))
        << source.description() << ": " << parameter->name();
    Tensor value = Tensor::New(allocator, DType::kF32, parameter->shape());
    stream.CopyIn(value.view().data, elements.data(), value.view().bytes());
    parameter->set_value(std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace plinth::models
