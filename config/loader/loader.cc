#include "plinth/config/loader/loader.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace plinth::config {
namespace {

namespace pb = google::protobuf;

// Keeps the first parse error; later ones are mostly consequences of it.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!text_.empty()) return;
    // Positions count from 0, and a line of -1 means the input as a whole.
    if (line >= 0) absl::StrAppend(&text_, line + 1, ":", column + 1, ": ");
    text_ += message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string FieldNames(const pb::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return absl::StrJoin(names, ", ");
}

// A config of people is a few kilobytes; this one is a file that was named by mistake.
constexpr uintmax_t kMaxConfigBytes = 16 << 20;

enum class Repeats { kRefused, kLastWins };

absl::Status MergeText(const std::string& text, const std::string& origin, Repeats repeats,
                       RunConfig& config) {
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  const bool ok = repeats == Repeats::kRefused ? parser.ParseFromString(text, &config)
                                               : parser.MergeFromString(text, &config);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(origin, ":", error.text()));
}

}  // namespace

absl::Status ApplySetting(const std::string& setting, RunConfig& config) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", setting, ": expected path=value, as in train.steps=100"));
  }
  const std::string path = setting.substr(0, equals);
  const std::string value = setting.substr(equals + 1);

  const pb::Descriptor* type = RunConfig::descriptor();
  const pb::FieldDescriptor* field = nullptr;
  std::string open, close;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    if (type == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", setting, ": ", field->full_name(), " has no fields"));
    }
    field = type->FindFieldByName(std::string(part));
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", setting, ": no field \"", part, "\"; known: ", FieldNames(*type)));
    }
    type = field->message_type();
    if (type != nullptr) {
      absl::StrAppend(&open, field->name(), " { ");
      close += " }";
    }
  }
  if (type != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set ", setting, ": ", path, " is a group; set one of its fields: ", FieldNames(*type)));
  }
  const bool quoted = field->type() == pb::FieldDescriptor::TYPE_STRING;
  // A number or a name; anything else could close the group and set other fields.
  if (!quoted && (value.empty() || !std::all_of(value.begin(), value.end(), [](unsigned char c) {
                    return std::isalnum(c) || c == '+' || c == '-' || c == '.' || c == '_';
                  }))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", setting, ": \"", value, "\" is not a value for ", path));
  }
  const std::string literal = quoted ? absl::StrCat("\"", absl::CEscape(value), "\"") : value;
  return MergeText(absl::StrCat(open, field->name(), ": ", literal, close),
                   absl::StrCat("--set ", setting), Repeats::kLastWins, config);
}

absl::StatusOr<RunConfig> ParseRunConfig(const std::string& text, const std::string& origin,
                                         const std::vector<std::string>& settings) {
  RunConfig config;
  if (absl::Status status = MergeText(text, origin, Repeats::kRefused, config); !status.ok())
    return status;
  for (const std::string& setting : settings) {
    if (absl::Status status = ApplySetting(setting, config); !status.ok()) return status;
  }
  FillDefaults(config);
  return config;
}

absl::StatusOr<RunConfig> LoadRunConfig(const std::string& path,
                                        const std::vector<std::string>& settings) {
  // A pipe would wait for its other end, and a device need not have one.
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read config file \"", path, "\": it is not a regular file"));
  }
  if (std::filesystem::file_size(path, error) > kMaxConfigBytes && !error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read config file \"", path, "\": it has more than ", kMaxConfigBytes, " bytes"));
  }
  std::ifstream file(path);
  std::stringstream text;
  // An empty file has no characters to insert, which is no failure; one that cannot be read is.
  const bool empty = file && file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (!empty && !(file && text << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat("cannot read config file \"", path, "\": ", std::strerror(errno)));
  }
  return ParseRunConfig(text.str(), path, settings);
}

void FillDefaults(ModelConfig& model) {
  if (model.kv_heads() == 0) model.set_kv_heads(model.heads());
  // Heads that do not divide the width are for Validate to tell.
  if (model.head_dim() == 0 && model.heads() > 0 && model.model_dim() % model.heads() == 0) {
    model.set_head_dim(model.model_dim() / model.heads());
  }
  if (model.architecture() == GPT2) {
    // Unsigned: a size out of range must reach Validate without overflow.
    const uint64_t width = static_cast<uint64_t>(model.model_dim());
    if (model.ffn_dim() == 0) model.set_ffn_dim(static_cast<int64_t>(4 * width));
    model.set_tie_embeddings(true);
  }
  if (model.norm_eps() == 0) model.set_norm_eps(1e-5);
  if (model.rope_theta() == 0) model.set_rope_theta(10000);
}

void FillDefaults(AdamWConfig& adamw) {
  if (adamw.beta1() == 0) adamw.set_beta1(0.9);
  if (adamw.beta2() == 0) adamw.set_beta2(0.95);
  if (adamw.eps() == 0) adamw.set_eps(1e-8);
}

void FillDefaults(ServeConfig& serve) {
  if (serve.host().empty()) serve.set_host("127.0.0.1");
  if (serve.http_port() == 0) serve.set_http_port(8000);
  if (serve.max_batch() == 0) serve.set_max_batch(16);
  if (serve.max_queue() == 0) serve.set_max_queue(256);
}

void FillDefaults(RunConfig& config) {
  ModelConfig& model = *config.mutable_model();
  FillDefaults(model);

  TrainConfig& train = *config.mutable_train();
  FillDefaults(*train.mutable_adamw());
  if (train.bucket_bytes() == 0) train.set_bucket_bytes(int64_t{4} << 20);
  if (train.keep_checkpoints() == 0) train.set_keep_checkpoints(2);

  ServeConfig& serve = *config.mutable_serve();
  FillDefaults(serve);
  if (serve.kv_tokens() == 0) serve.set_kv_tokens(serve.max_batch() * model.max_positions());

  CommConfig& comm = *config.mutable_comm();
  if (comm.timeout_seconds() == 0) comm.set_timeout_seconds(60);
  ClusterConfig& cluster = *config.mutable_cluster();
  if (cluster.ranks() == 0) cluster.set_ranks(1);
  if (cluster.grace_seconds() == 0) cluster.set_grace_seconds(30);
}

std::string ToText(const RunConfig& config) {
  std::string text;
  pb::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace plinth::config
