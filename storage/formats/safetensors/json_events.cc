#include "plinth/storage/formats/safetensors/json_events.h"

#include <boost/json/basic_parser_impl.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace plinth::storage {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// What Boost.JSON's push parser calls, forwarded to JsonEvents. The names and signatures
// are Boost's requirement on a handler.
class Handler {
 public:
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  explicit Handler(JsonEvents* events) : events_(events) {}

  const absl::Status& status() const { return status_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& ec) { return Go(events_->BeginObject(), ec); }
  bool on_object_end(size_t, error_code& ec) { return Go(events_->EndObject(), ec); }
  bool on_array_begin(error_code& ec) { return Go(events_->BeginArray(), ec); }
  bool on_array_end(size_t, error_code& ec) { return Go(events_->EndArray(), ec); }
  bool on_key_part(string_view part, size_t, error_code&) { return Keep(part); }
  bool on_key(string_view last, size_t, error_code& ec) {
    Keep(last);
    return Go(events_->Key(std::exchange(text_, {})), ec);
  }
  bool on_string_part(string_view part, size_t, error_code&) { return Keep(part); }
  bool on_string(string_view last, size_t, error_code& ec) {
    Keep(last);
    return Go(events_->String(std::exchange(text_, {})), ec);
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t value, string_view digits, error_code& ec) {
    if (digits.starts_with('-')) return Go(events_->Other("a negative number"), ec);
    return Go(events_->Unsigned(static_cast<uint64_t>(value)), ec);
  }
  bool on_uint64(uint64_t value, string_view, error_code& ec) {
    return Go(events_->Unsigned(value), ec);
  }
  bool on_double(double, string_view, error_code& ec) {
    return Go(events_->Other("a fraction or a number beyond 64 bits"), ec);
  }
  bool on_bool(bool, error_code& ec) { return Go(events_->Other("a boolean"), ec); }
  bool on_null(error_code& ec) { return Go(events_->Other("null"), ec); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  bool Keep(string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool Go(absl::Status status, error_code& ec) {
    if (status.ok()) return true;
    status_ = std::move(status);
    ec = make_error_code(boost::json::error::exception);  // stops the parser; we report status_
    return false;
  }

  JsonEvents* events_;
  std::string text_;
  absl::Status status_;
};

}  // namespace

absl::Status ReadJson(std::string_view text, JsonEvents& events) {
  boost::json::basic_parser<Handler> parser(boost::json::parse_options(), &events);
  error_code error;
  const size_t used = parser.write_some(false, text.data(), text.size(), error);
  const std::string where = absl::StrCat("JSON byte ", used, ": ");
  if (const absl::Status& status = parser.handler().status(); !status.ok()) {
    return absl::Status(status.code(), where + std::string(status.message()));
  }
  if (error) return absl::InvalidArgumentError(where + error.message());
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    return absl::InvalidArgumentError(where + "text after the end of the document");
  }
  return absl::OkStatus();
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 120;
  std::string shown =
      absl::Utf8SafeCHexEscape(absl::string_view(text.data(), text.size()).substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  return "\"" + shown + "\"";
}

}  // namespace plinth::storage
