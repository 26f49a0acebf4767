#include "plinth/models/tokenizer/words.h"

#include <pcre2.h>

#include <cstddef>
#include <memory>

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::models {
namespace {

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};

// PCRE2's own \w is letters, numbers of all kinds and "_".
constexpr std::string_view kWordCharacter =
    R"(\A[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])";

// One whole character; only read once it is made, so that threads may share it.
bool IsWordCharacter(std::string_view character) {
  static const std::unique_ptr<pcre2_code, Free> code([] {
    int error = 0;
    PCRE2_SIZE offset = 0;
    return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kWordCharacter.data()), kWordCharacter.size(),
                         PCRE2_UTF, &error, &offset, nullptr);
  }());
  CHECK(code != nullptr);
  const std::unique_ptr<pcre2_match_data, Free> result(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  CHECK(result != nullptr);
  return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(character.data()), character.size(),
                     0, PCRE2_NO_UTF_CHECK, result.get(), nullptr) > 0;
}

}  // namespace

bool StartsWithWord(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Unit unit = NextUtf8Unit(text);
  return unit.kind == Utf8Kind::kCharacter && IsWordCharacter(text.substr(0, unit.bytes));
}

bool EndsInWord(std::string_view text) {
  for (size_t bytes = 1; bytes <= 4 && bytes <= text.size(); ++bytes) {
    const std::string_view tail = text.substr(text.size() - bytes);
    const Utf8Unit unit = NextUtf8Unit(tail);
    if (unit.kind == Utf8Kind::kCharacter) return unit.bytes == bytes && IsWordCharacter(tail);
  }
  return false;
}

}  // namespace plinth::models
