// A strict JSON reader that calls back, so that a file's size bounds what is allocated.
#ifndef PLINTH_STORAGE_FORMATS_SAFETENSORS_JSON_EVENTS_H_
#define PLINTH_STORAGE_FORMATS_SAFETENSORS_JSON_EVENTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace plinth::storage {

// What a document consists of, in its order. Any error returned stops the reading. Text
// arguments are unescaped, valid UTF-8, and valid during the call only.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual absl::Status BeginObject() = 0;
  virtual absl::Status EndObject() = 0;
  virtual absl::Status BeginArray() = 0;
  virtual absl::Status EndArray() = 0;
  virtual absl::Status Key(std::string_view key) = 0;
  virtual absl::Status String(std::string_view value) = 0;
  // A number without sign, fraction or exponent that fits in 64 bits.
  virtual absl::Status Unsigned(uint64_t value) = 0;
  // Anything else: `what` describes it ("a fraction or a number beyond 64 bits", "null").
  virtual absl::Status Other(std::string_view what) = 0;
};

// Reads one document, RFC 8259 with nothing added: no comments, no trailing commas, no
// invalid UTF-8, at most 32 levels; only white space may follow. Callers find duplicate
// keys, because they keep the keys anyway.
// Errors   "JSON byte <n>: <why>", kInvalidArgument, or the code of the callback's error.
// Cost     scratch memory of at most the longest string.
absl::Status ReadJson(std::string_view text, JsonEvents& events);

// A key or value for an error message: quoted, escaped, cut after 120 bytes.
std::string Quoted(std::string_view text);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_FORMATS_SAFETENSORS_JSON_EVENTS_H_
