#include "plinth/hardware/base/json_fields.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth {
namespace {

namespace json = ::boost::json;

// Never prints a whole vocabulary.
std::string Brief(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = json::serialize(value);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

bool IsOff(const json::value& value) {
  if (value.is_bool()) return !value.get_bool();
  if (value.is_string()) return value.get_string().empty();
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  if (value.is_double()) return value.get_double() == 0;
  if (value.is_int64()) return value.get_int64() == 0;
  return value.is_null();
}

json::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

absl::Status WrongJson(std::string_view path, std::string_view expected, const json::value& got) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(path), ": expected ", std::string(expected), ", got ", Brief(got)));
}

absl::Status UnsupportedJson(std::string_view path, std::string_view supported,
                             const json::value& got) {
  return absl::UnimplementedError(absl::StrCat(std::string(path), ": ", Brief(got),
                                               " is not supported, only ", std::string(supported)));
}

absl::StatusOr<Fields> Fields::Of(const json::value& value, std::string path) {
  if (!value.is_object()) return WrongJson(path.empty() ? "document" : path, "an object", value);
  return Fields(&value.get_object(), std::move(path));
}

std::string Fields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", std::string(key));
}

const json::value* Fields::Find(std::string_view key) {
  known_.emplace_back(key);
  const json::value* const value = object_->if_contains(View(key));
  return value == nullptr || value->is_null() ? nullptr : value;
}

absl::StatusOr<const json::value*> Fields::Get(std::string_view key) {
  const json::value* const value = Find(key);
  if (value == nullptr) return absl::InvalidArgumentError(PathOf(key) + ": is missing");
  return value;
}

absl::StatusOr<std::string> Fields::String(std::string_view key) {
  ASSIGN_OR_RETURN(const json::value* const value, Get(key));
  if (!value->is_string()) return WrongJson(PathOf(key), "a string", *value);
  return std::string(value->get_string());
}

absl::StatusOr<const json::array*> Fields::Array(std::string_view key) {
  ASSIGN_OR_RETURN(const json::value* const value, Get(key));
  if (!value->is_array()) return WrongJson(PathOf(key), "an array", *value);
  return &value->get_array();
}

absl::StatusOr<bool> Fields::Bool(std::string_view key) {
  ASSIGN_OR_RETURN(const json::value* const value, Get(key));
  if (!value->is_bool()) return WrongJson(PathOf(key), "true or false", *value);
  return value->get_bool();
}

absl::StatusOr<bool> Fields::Bool(std::string_view key, bool if_absent) {
  if (Find(key) == nullptr) return if_absent;
  return Bool(key);
}

absl::StatusOr<int32_t> Fields::Integer(std::string_view key, int32_t least, int32_t most) {
  ASSIGN_OR_RETURN(const json::value* const value, Get(key));
  if (!value->is_int64() || value->get_int64() < least || value->get_int64() > most) {
    return WrongJson(PathOf(key), absl::StrCat("an integer from ", least, " to ", most), *value);
  }
  return static_cast<int32_t>(value->get_int64());
}

absl::StatusOr<double> Fields::Number(std::string_view key, double least, double most,
                                      double if_absent) {
  const json::value* const value = Find(key);
  if (value == nullptr) return if_absent;
  // to_number converts integers too; out of double's range or not a number is an error code.
  boost::system::error_code ec;
  const double number = value->is_number() ? value->to_number<double>(ec) : least - 1;
  if (ec || !(number >= least && number <= most)) {
    return WrongJson(PathOf(key), absl::StrCat("a number from ", least, " to ", most), *value);
  }
  return number;
}

absl::Status Fields::MustBeOff(std::string_view key) {
  const json::value* const value = Find(key);
  if (value == nullptr || IsOff(*value)) return absl::OkStatus();
  return UnsupportedJson(PathOf(key), "null", *value);
}

absl::Status Fields::Done() const {
  for (const auto& field : *object_) {
    const std::string_view key(field.key().data(), field.key().size());
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    return absl::UnimplementedError(
        absl::StrCat(PathOf(key.substr(0, 60)), ": this key is unknown"));
  }
  return absl::OkStatus();
}

}  // namespace plinth
