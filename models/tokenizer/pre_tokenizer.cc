#include "plinth/models/tokenizer/pre_tokenizer.h"

#include <pcre2.h>

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::models {
namespace {

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};

std::string PcreMessage(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// PCRE2 only reads the code and the match context while matching, so threads share them.
struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_context, Free> context;
};

// Match results of one Split call, one per nesting level.
struct PreTokenizer::Scratch {
  std::vector<std::unique_ptr<pcre2_match_data, Free>> results;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(
    std::vector<std::string> patterns) {
  std::unique_ptr<PreTokenizer> self(new PreTokenizer);
  const std::unique_ptr<pcre2_compile_context, Free> options(pcre2_compile_context_create(nullptr));
  CHECK(options != nullptr);
  pcre2_set_parens_nest_limit(options.get(), 50);
  pcre2_set_max_pattern_length(options.get(), 64 << 10);
  for (const std::string& pattern : patterns) {
    ASSIGN_OR_RETURN(const std::string translated, TranslatePattern(pattern));
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto made = std::make_unique<Pattern>();
    made->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                   translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset,
                                   options.get()));
    if (made->code == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("pattern \"", pattern, "\" does not compile: ", PcreMessage(error)));
    }
    uint32_t matches_empty = 0;
    pcre2_pattern_info(made->code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pattern \"", pattern, "\" can match the empty string"));
    }
    // Without JIT (a hardened kernel may refuse it) the same pattern is interpreted.
    pcre2_jit_compile(made->code.get(), PCRE2_JIT_COMPLETE);
    made->context.reset(pcre2_match_context_create(nullptr));
    CHECK(made->context != nullptr);
    pcre2_set_match_limit(made->context.get(), kMatchLimit);
    self->patterns_.push_back(std::move(made));
  }
  return self;
}

absl::Status PreTokenizer::Split(std::string_view text,
                                 absl::FunctionRef<void(std::string_view)> piece) const {
  Scratch scratch;
  for (const auto& pattern : patterns_) {
    scratch.results.emplace_back(
        pcre2_match_data_create_from_pattern(pattern->code.get(), nullptr));
    CHECK(scratch.results.back() != nullptr);
  }
  while (!text.empty()) {
    const size_t valid = ValidUtf8Prefix(text);
    RETURN_IF_ERROR(SplitFrom(0, text.substr(0, valid), scratch, piece));
    text.remove_prefix(valid);
    size_t broken = 0;
    while (broken < text.size()) {
      const Utf8Unit unit = NextUtf8Unit(text.substr(broken));
      if (unit.kind == Utf8Kind::kCharacter) break;
      broken += unit.bytes;
    }
    if (broken > 0) piece(text.substr(0, broken));
    text.remove_prefix(broken);
  }
  return absl::OkStatus();
}

absl::Status PreTokenizer::SplitFrom(size_t level, std::string_view text, Scratch& scratch,
                                     absl::FunctionRef<void(std::string_view)> piece) const {
  if (text.empty()) return absl::OkStatus();
  if (level == patterns_.size()) {
    piece(text);
    return absl::OkStatus();
  }
  const Pattern& pattern = *patterns_[level];
  pcre2_match_data* const result = scratch.results[level].get();
  size_t at = 0;
  while (at < text.size()) {
    const int rc =
        pcre2_match(pattern.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, result, pattern.context.get());
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("pre-tokenizer pattern gave up at byte ", at,
                                                       " of a stretch of ", text.size(),
                                                       " bytes: ", PcreMessage(rc)));
    }
    const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(result);
    const size_t begin = span[0], end = span[1];
    RETURN_IF_ERROR(SplitFrom(level + 1, text.substr(at, begin - at), scratch, piece));
    RETURN_IF_ERROR(SplitFrom(level + 1, text.substr(begin, end - begin), scratch, piece));
    at = end;
  }
  return SplitFrom(level + 1, text.substr(at), scratch, piece);
}

}  // namespace plinth::models
