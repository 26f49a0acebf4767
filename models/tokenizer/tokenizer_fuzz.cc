// Any bytes are either a tokenizer that keeps its promises or an error that says something. A
// NUL byte ends the JSON; what follows is encoded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plinth/hardware/base/check.h"
#include "plinth/models/tokenizer/nfc.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace {

using plinth::models::Tokenizer;

void CheckNormalForm(std::string_view text) {
  const std::string once = plinth::models::ToNfc(text);
  CHECK(plinth::models::ToNfc(once) == once);
}

// What a file changes in a text on purpose.
bool ChangesText(std::string_view json) {
  for (const char* key : {"NFC", "strip", "add_prefix_space"}) {
    if (json.find(key) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view json = input.substr(0, input.find('\0'));
  const std::string_view text = input.substr(std::min(input.size(), json.size() + 1));
  CheckNormalForm(text);
  const auto tokenizer = Tokenizer::Parse(json);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.status().message().empty());
    return 0;
  }
  const std::string saved = (*tokenizer)->ToJson();
  const auto again = Tokenizer::Parse(saved);
  CHECK_OK(again);
  CHECK((*again)->ToJson() == saved);
  const auto ids = (*tokenizer)->Encode(text, {});
  if (!ids.ok()) return 0;
  const auto bytes = (*tokenizer)->Decode(*ids, {});
  CHECK_OK(bytes);
  CHECK(ChangesText(json) || *bytes == text);
  return 0;
}
