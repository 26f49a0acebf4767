// Any bytes are either a config that can be written and read back, or an error that says
// something. A NUL byte ends the file's text; each text after it that ends so is a --set.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "plinth/config/loader/loader.h"
#include "plinth/hardware/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using plinth::config::Purpose;
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> settings = absl::StrSplit(input, '\0');
  const std::string text = settings[0];
  settings.erase(settings.begin());
  const auto config = plinth::config::ParseRunConfig(text, "fuzz", settings);
  if (!config.ok()) {
    CHECK(!config.status().message().empty());
    return 0;
  }
  for (const Purpose purpose : {Purpose::kPlan, Purpose::kTrain, Purpose::kServe}) {
    const bool valid = plinth::config::Validate(*config, purpose).empty();
    CHECK_EQ(plinth::config::CheckValid(*config, purpose).ok(), valid);
  }
  const std::string written = plinth::config::ToText(*config);
  const auto again = plinth::config::ParseRunConfig(written, "again", {});
  CHECK_OK(again);
  CHECK(plinth::config::ToText(*again) == written) << written;
  return 0;
}
