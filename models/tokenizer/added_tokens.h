// Finds added tokens (chat markers, end of text) in raw text: leftmost first, longest of those.
// A token may take the white space around it along, as some fill-in markers do, and may ask to
// stand alone, not beside letters or digits.
// Threads: immutable after the last Add; Find may run concurrently.
#ifndef PLINTH_MODELS_TOKENIZER_ADDED_TOKENS_H_
#define PLINTH_MODELS_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plinth::models {

class AddedTokenMatcher {
 public:
  // Bounds the work at each position of a text.
  static constexpr size_t kMaxContentBytes = 512;

  AddedTokenMatcher() : ids_(1, -1) {}

  struct Traits {
    bool strip_left, strip_right;  // takes the white space on that side along
    bool single_word;              // only where no word character touches it; else it is plain text
  };
  // `content` is not empty and at most kMaxContentBytes long.
  void Add(std::string_view content, int32_t id, Traits traits = {});

  struct Match {
    size_t begin;
    size_t bytes;
    int32_t id;
  };
  // The first match at or after `from`, with what it takes along at or after `from`.
  std::optional<Match> Find(std::string_view text, size_t from) const;

  // Calls between(stretch) for the non-empty text around matches and matched(id) for each match,
  // in order. Either returns a Status; the first error ends the walk and is returned.
  template <typename Between, typename Matched>
  auto Walk(std::string_view text, const Between& between, const Matched& matched) const
      -> decltype(between(text)) {
    size_t at = 0;
    while (const std::optional<Match> match = Find(text, at)) {
      if (match->begin > at) {
        if (auto status = between(text.substr(at, match->begin - at)); !status.ok()) return status;
      }
      if (auto status = matched(match->id); !status.ok()) return status;
      at = match->begin + match->bytes;
    }
    if (at == text.size()) return {};
    return between(text.substr(at));
  }

 private:
  std::optional<Match> FindContent(std::string_view text, size_t from) const;
  std::optional<Match> LongestAt(std::string_view text, size_t begin) const;

  // A byte trie: node 0 is the root; ids_[node] is the token that ends there, or -1.
  std::vector<int32_t> ids_;
  absl::flat_hash_map<std::pair<uint32_t, uint8_t>, uint32_t> edges_;
  std::array<bool, 256> starts_{};
  absl::flat_hash_map<int32_t, Traits> traits_;  // of the ids that have any
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_ADDED_TOKENS_H_
