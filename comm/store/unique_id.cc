#include "plinth/comm/store/unique_id.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {

std::string MakeUniqueId() {
  char bytes[kUniqueIdCharacters / 2];
  // Reads of up to 256 bytes are never cut short once the generator is seeded.
  CHECK_EQ(getrandom(bytes, sizeof(bytes), 0), static_cast<ssize_t>(sizeof(bytes)));
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace plinth::comm
