// RETURN_IF_ERROR and ASSIGN_OR_RETURN, with Abseil's spelling of the idea.
//
//   RETURN_IF_ERROR(file->ReadAt(offset, bytes)) << path << ": tensor " << name;
//   ASSIGN_OR_RETURN(std::unique_ptr<File> file, OpenFile(path));
//   ASSIGN_OR_RETURN(int n, ParseInt(text), _ << "--count");
//
// What is streamed becomes a prefix of the message ("<context>: <message>"), so the
// innermost error stays whole and the reader sees outermost context first.
#ifndef PLINTH_HARDWARE_BASE_STATUS_MACROS_H_
#define PLINTH_HARDWARE_BASE_STATUS_MACROS_H_

#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth {

// Collects context for an error that is on its way up. Converts to Status and to
// any StatusOr<T>. Only made by the macros below. Not thread-safe.
class StatusBuilder {
 public:
  explicit StatusBuilder(absl::Status status) : status_(std::move(status)) {}

  template <typename T>
  StatusBuilder& operator<<(const T& value) {
    context_ << value;
    return *this;
  }

  operator absl::Status() const {  // NOLINT: implicit by design
    const std::string context = context_.str();
    if (context.empty()) return status_;
    return absl::Status(status_.code(), context + ": " + std::string(status_.message()));
  }
  template <typename T>
  operator absl::StatusOr<T>() const {  // NOLINT: implicit by design
    return absl::Status(*this);
  }

 private:
  absl::Status status_;
  std::ostringstream context_;
};

}  // namespace plinth

#define PLINTH_CONCAT_INNER_(a, b) a##b
#define PLINTH_CONCAT_(a, b) PLINTH_CONCAT_INNER_(a, b)

// The `if/else` form makes a trailing `<< context` bind to the builder; the `switch`
// keeps that `else` from pairing with an unbraced `if` around the macro.
#define RETURN_IF_ERROR(expr)                                        \
  switch (0)                                                         \
  case 0:                                                            \
  default:                                                           \
    if (absl::Status plinth_status_ = (expr); plinth_status_.ok()) { \
    } else /* NOLINT */                                              \
      return ::plinth::StatusBuilder(std::move(plinth_status_))

#define ASSIGN_OR_RETURN(...)                                                     \
  PLINTH_ASSIGN_SELECT_(__VA_ARGS__, PLINTH_ASSIGN_3_, PLINTH_ASSIGN_2_, unused_) \
  (PLINTH_CONCAT_(plinth_status_or_, __LINE__), __VA_ARGS__)
#define PLINTH_ASSIGN_SELECT_(a, b, c, macro, ...) macro
#define PLINTH_ASSIGN_2_(tmp, lhs, expr) PLINTH_ASSIGN_3_(tmp, lhs, expr, _)
#define PLINTH_ASSIGN_3_(tmp, lhs, expr, builder)       \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) {                                      \
    ::plinth::StatusBuilder _(std::move(tmp).status()); \
    return (builder);                                   \
  }                                                     \
  lhs = *std::move(tmp)

#endif  // PLINTH_HARDWARE_BASE_STATUS_MACROS_H_
