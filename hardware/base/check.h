// CHECK and its comparisons: contracts whose violation is a bug in this program.
//
// A failed check prints the expression, both values and any streamed detail to
// stderr, then aborts. Never use it for what bytes, flags, peers or files from
// outside can cause: that is absl::Status (docs/architecture.md, "Errors").
// DCHECK compiles to nothing in optimised builds.
#ifndef PLINTH_HARDWARE_BASE_CHECK_H_
#define PLINTH_HARDWARE_BASE_CHECK_H_

#include <functional>
#include <optional>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::internal {

// Aborts with its collected text when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, std::string what);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Lets `cond ? (void)0 : Voidify() & stream << ...` have type void in both arms.
struct Voidify {
  void operator&(std::ostream&) const {}
};

// Text of a failed comparison, or nothing when it holds.
template <typename Compare, typename A, typename B>
std::optional<std::string> CompareFailure(Compare compare, const char* expr, const A& a,
                                          const B& b) {
  if (__builtin_expect(static_cast<bool>(compare(a, b)), 1)) return std::nullopt;
  std::ostringstream out;
  out << expr << " (" << a << " vs. " << b << ")";
  return out.str();
}

inline const absl::Status& AsStatus(const absl::Status& s) { return s; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& s) {
  return s.status();
}

inline std::optional<std::string> StatusFailure(const char* expr, const absl::Status& status) {
  if (__builtin_expect(status.ok(), 1)) return std::nullopt;
  return expr + (" is " + status.ToString());
}

}  // namespace plinth::internal

#define CHECK(cond)                            \
  __builtin_expect(static_cast<bool>(cond), 1) \
      ? (void)0                                \
      : ::plinth::internal::Voidify() &        \
            ::plinth::internal::CheckFailure(__FILE__, __LINE__, #cond).stream()

// `while` and not `if`, so that a trailing `else` cannot bind to the macro.
#define PLINTH_CHECK_WHILE_(failure)                                   \
  while (const std::optional<std::string> plinth_failure_ = (failure)) \
  ::plinth::internal::CheckFailure(__FILE__, __LINE__, *plinth_failure_).stream()

#define CHECK_EQ(a, b) \
  PLINTH_CHECK_WHILE_(::plinth::internal::CompareFailure(std::equal_to<>(), #a " == " #b, a, b))
#define CHECK_NE(a, b) \
  PLINTH_CHECK_WHILE_(::plinth::internal::CompareFailure(std::not_equal_to<>(), #a " != " #b, a, b))
#define CHECK_LT(a, b) \
  PLINTH_CHECK_WHILE_(::plinth::internal::CompareFailure(std::less<>(), #a " < " #b, a, b))
#define CHECK_LE(a, b) \
  PLINTH_CHECK_WHILE_(::plinth::internal::CompareFailure(std::less_equal<>(), #a " <= " #b, a, b))
#define CHECK_GT(a, b) \
  PLINTH_CHECK_WHILE_(::plinth::internal::CompareFailure(std::greater<>(), #a " > " #b, a, b))
#define CHECK_GE(a, b) \
  PLINTH_CHECK_WHILE_( \
      ::plinth::internal::CompareFailure(std::greater_equal<>(), #a " >= " #b, a, b))
#define CHECK_OK(expr) \
  PLINTH_CHECK_WHILE_(::plinth::internal::StatusFailure(#expr, ::plinth::internal::AsStatus(expr)))

#ifdef NDEBUG
#define DCHECK(cond) \
  while (false) CHECK(cond)
#define DCHECK_EQ(a, b) \
  while (false) CHECK_EQ(a, b)
#define DCHECK_LT(a, b) \
  while (false) CHECK_LT(a, b)
#define DCHECK_LE(a, b) \
  while (false) CHECK_LE(a, b)
#else
#define DCHECK(cond) CHECK(cond)
#define DCHECK_EQ(a, b) CHECK_EQ(a, b)
#define DCHECK_LT(a, b) CHECK_LT(a, b)
#define DCHECK_LE(a, b) CHECK_LE(a, b)
#endif

#endif  // PLINTH_HARDWARE_BASE_CHECK_H_
