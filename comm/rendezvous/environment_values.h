// Variables of an environment, with errors that name them.
#ifndef PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_VALUES_H_
#define PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_VALUES_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plinth::comm {

// Value of a variable, or null when it is not set; the shape of std::getenv.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// An empty variable counts as not set.
class EnvironmentValues {
 public:
  // `lookup` outlives this.
  explicit EnvironmentValues(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::string Text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? std::string() : std::string(value);
  }
  bool Has(const char* name) const { return !Text(name).empty(); }
  // The first of the two that is set: a launcher's newer and older name for one thing.
  const char* Either(const char* name, const char* other) const { return Has(name) ? name : other; }

  // kInvalidArgument when it is not set, no whole number or outside [least, most].
  absl::StatusOr<int> Number(const char* name, int least, int most) const {
    const std::string text = Text(name);
    int value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "=\"", text, "\" is not a whole number from ", least, " to ", most));
    }
    return value;
  }

 private:
  const EnvironmentLookup& lookup_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RENDEZVOUS_ENVIRONMENT_VALUES_H_
