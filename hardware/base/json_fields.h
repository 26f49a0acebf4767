// Typed access to untrusted JSON whose errors name the key: "model.vocab: expected object, got 3".
//
// A Fields is a view of one object; it must not outlive the value. Every getter that is given a
// key marks it as known, and Done() reports the first key that nobody asked for. Not thread-safe.
#ifndef PLINTH_HARDWARE_BASE_JSON_FIELDS_H_
#define PLINTH_HARDWARE_BASE_JSON_FIELDS_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth {

// Plain kInvalidArgument / kUnimplemented with the path and a shortened print of the value.
absl::Status WrongJson(std::string_view path, std::string_view expected,
                       const boost::json::value& got);
absl::Status UnsupportedJson(std::string_view path, std::string_view supported,
                             const boost::json::value& got);

class Fields {
 public:
  // `path` is how errors call the object; empty for the document itself.
  static absl::StatusOr<Fields> Of(const boost::json::value& value, std::string path);

  // Null or absent gives nullptr.
  const boost::json::value* Find(std::string_view key);
  absl::StatusOr<const boost::json::value*> Get(std::string_view key);
  absl::StatusOr<std::string> String(std::string_view key);
  absl::StatusOr<const boost::json::array*> Array(std::string_view key);
  absl::StatusOr<bool> Bool(std::string_view key);
  absl::StatusOr<bool> Bool(std::string_view key, bool if_absent);
  absl::StatusOr<int32_t> Integer(std::string_view key, int32_t least, int32_t most);
  // A finite number in [least, most], or `if_absent`.
  absl::StatusOr<double> Number(std::string_view key, double least, double most, double if_absent);

  // kUnimplemented unless the key is absent, null, false, 0, "" or empty.
  absl::Status MustBeOff(std::string_view key);
  // kUnimplemented for a key that none of the above was asked for.
  absl::Status Done() const;

  std::string PathOf(std::string_view key) const;

 private:
  Fields(const boost::json::object* object, std::string path)
      : object_(object), path_(std::move(path)) {}

  const boost::json::object* object_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_JSON_FIELDS_H_
