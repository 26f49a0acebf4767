// Cuts text into the pieces inside which byte pairs may merge.
//
// Each pattern isolates its matches: text between matches is a piece as well, so the pieces of a
// text concatenate to the text. Later patterns cut the pieces of earlier ones.
//
// Invalid UTF-8 never reaches the regular expression: each maximal run of bytes that belong to no
// character is a piece of its own, and the valid stretches around it are matched apart.
#ifndef PLINTH_MODELS_TOKENIZER_PRE_TOKENIZER_H_
#define PLINTH_MODELS_TOKENIZER_PRE_TOKENIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth::models {

// The pattern of GPT-2: contractions, words, numbers, other symbols, white space.
extern const std::string_view kGpt2Pattern;

// Rewrites an Oniguruma pattern (the dialect of tokenizer.json) to PCRE2 of equal meaning: `\s`
// becomes Unicode's White_Space, which PCRE2's own `\s` is not. Errors: kUnimplemented, with the
// position, for every construct on which the two engines differ or may differ (`.`, `^`, `$`,
// `\w`, `\b`, nested classes, `&&`, inline flags but `(?i:`, `}+`, verbs).
absl::StatusOr<std::string> TranslatePattern(std::string_view pattern);

// Threads: immutable after Create; Split may run on any number of threads at once.
class PreTokenizer {
 public:
  // No pattern: every text is one piece. Errors: kInvalidArgument if a pattern does not compile or
  // can match nothing at all; kUnimplemented as TranslatePattern.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(std::vector<std::string> patterns);
  ~PreTokenizer();

  // Calls `piece` for each non-empty piece of `text`, in order; pieces point into `text`.
  // Errors: kResourceExhausted if one match needs more than kMatchLimit steps (a pattern that
  // backtracks without end); pieces before it have then been delivered.
  absl::Status Split(std::string_view text, absl::FunctionRef<void(std::string_view)> piece) const;

  // Steps of one match. White space of this length passes; a pattern with nested repeats, which
  // would run for years, fails within about a second.
  static constexpr unsigned kMatchLimit = 50'000'000;

 private:
  struct Pattern;
  struct Scratch;
  PreTokenizer();
  absl::Status SplitFrom(size_t level, std::string_view text, Scratch& scratch,
                         absl::FunctionRef<void(std::string_view)> piece) const;

  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_PRE_TOKENIZER_H_
