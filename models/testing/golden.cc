#include "plinth/models/testing/golden.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/hash.h"
#include "plinth/models/zoo/create.h"

namespace plinth::models::testing {
namespace {

// A multiple of 2^-24 in [0, 1): FNV-1a of the name, advanced and mixed as in splitmix64.
float Unit(const std::string& name, uint64_t index) {
  uint64_t x = Fnv1a(name) + (index + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return static_cast<float>(x >> 40) * 0x1.0p-24f;
}

float Weight(const std::string& name, uint64_t index) {
  const bool gain = name.ends_with("norm.weight");
  return (gain ? 1.0f : 0.0f) + (Unit(name, index) - 0.5f) / 2;
}

template <typename T>
bool ReadAll(std::istringstream& in, std::vector<T>& values) {
  for (T value; in >> value;) values.push_back(value);
  return in.eof() && !values.empty();
}

bool ReadLine(const std::string& line, Golden& golden) {
  std::istringstream in(line);
  std::string key;
  if (!(in >> key)) return false;
  if (key == "#") return true;
  if (key == "config") {
    return google::protobuf::TextFormat::ParseFromString(line.substr(key.size()), &golden.config);
  }
  if (key == "starts") return ReadAll(in, golden.seq_starts);
  if (key == "ids") return ReadAll(in, golden.ids);
  if (key == "targets") return ReadAll(in, golden.targets);
  if (key == "loss") return static_cast<bool>(in >> golden.loss);
  if (key == "logits") return ReadAll(in, golden.logits_TV);
  const std::string gradient = "gradient/";
  if (!key.starts_with(gradient)) return false;
  return ReadAll(in, golden.gradients[key.substr(gradient.size())]);
}

}  // namespace

absl::StatusOr<Golden> LoadGolden(config::Architecture architecture) {
  const std::string path = absl::StrCat("models/testing/goldens/",
                                        architecture == config::GPT2 ? "gpt2" : "llama", ".txt");
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  Golden golden;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!ReadLine(line, golden)) {
      return absl::DataLossError(absl::StrCat(path, ": line ", number, ": ", line.substr(0, 40)));
    }
  }
  for (size_t s = 0; s + 1 < golden.seq_starts.size(); ++s) {
    for (int32_t t = golden.seq_starts[s]; t < golden.seq_starts[s + 1]; ++t) {
      golden.positions.push_back(t - golden.seq_starts[s]);
    }
  }
  if (golden.positions.size() != golden.ids.size()) {
    return absl::DataLossError(absl::StrCat(path, ": ids and starts disagree"));
  }
  return golden;
}

std::unique_ptr<LanguageModel> GoldenModel(const Golden& golden, CachingAllocator& allocator,
                                           Stream& stream) {
  auto model = CreateModel(golden.config);
  CHECK_OK(model);
  std::vector<float> values;
  for (Parameter* p : (*model)->parameters()) {
    values.resize(static_cast<size_t>(p->shape().elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = Weight(p->name(), i);
    Tensor value = Tensor::New(allocator, DType::kF32, p->shape());
    stream.CopyIn(value.view().data, values.data(), value.view().bytes());
    p->set_value(std::move(value));
  }
  CHECK_OK(stream.Synchronize());
  return *std::move(model);
}

}  // namespace plinth::models::testing
