#include "plinth/models/tokenizer/added_tokens.h"

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/text/utf8.h"
#include "plinth/models/tokenizer/words.h"

namespace plinth::models {

void AddedTokenMatcher::Add(std::string_view content, int32_t id, Traits traits) {
  CHECK(!content.empty());
  CHECK_LE(content.size(), kMaxContentBytes);
  starts_[static_cast<uint8_t>(content[0])] = true;
  uint32_t node = 0;
  for (const char c : content) {
    const auto [it, added] =
        edges_.try_emplace({node, static_cast<uint8_t>(c)}, static_cast<uint32_t>(ids_.size()));
    if (added) ids_.push_back(-1);
    node = it->second;
  }
  ids_[node] = id;
  if (traits.strip_left || traits.strip_right || traits.single_word) traits_[id] = traits;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::Find(std::string_view text,
                                                                size_t from) const {
  size_t search = from;
  while (const std::optional<Match> match = FindContent(text, search)) {
    const auto traits = traits_.find(match->id);
    if (traits == traits_.end()) return match;
    size_t begin = match->begin, end = match->begin + match->bytes;
    if (traits->second.single_word &&
        (EndsInWord(text.substr(0, begin)) || StartsWithWord(text.substr(end)))) {
      search = end;  // nor does a part of it count: the search goes on after it
      continue;
    }
    if (traits->second.strip_left) begin -= TrailingWhiteSpace(text.substr(from, begin - from));
    if (traits->second.strip_right) end += LeadingWhiteSpace(text.substr(end));
    return Match{begin, end - begin, match->id};
  }
  return std::nullopt;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::FindContent(std::string_view text,
                                                                       size_t from) const {
  if (edges_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    if (const std::optional<Match> longest = LongestAt(text, begin)) return longest;
  }
  return std::nullopt;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::LongestAt(std::string_view text,
                                                                     size_t begin) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto edge = edges_.find({node, static_cast<uint8_t>(text[i])});
    if (edge == edges_.end()) break;
    node = edge->second;
    if (ids_[node] >= 0) longest = Match{begin, i + 1 - begin, ids_[node]};
  }
  return longest;
}

}  // namespace plinth::models
