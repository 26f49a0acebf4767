#include "plinth/models/tokenizer/added_tokens.h"

#include "plinth/hardware/base/check.h"
#include "plinth/hardware/text/utf8.h"

namespace plinth::models {

void AddedTokenMatcher::Add(std::string_view content, int32_t id, Strip strip) {
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
  if (strip.left || strip.right) strips_[id] = strip;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::Find(std::string_view text,
                                                                size_t from) const {
  std::optional<Match> match = FindContent(text, from);
  const auto strip = match ? strips_.find(match->id) : strips_.end();
  if (strip == strips_.end()) return match;
  size_t begin = match->begin, end = match->begin + match->bytes;
  if (strip->second.left) begin -= TrailingWhiteSpace(text.substr(from, begin - from));
  if (strip->second.right) end += LeadingWhiteSpace(text.substr(end));
  return Match{begin, end - begin, match->id};
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::FindContent(std::string_view text,
                                                                       size_t from) const {
  if (edges_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const auto edge = edges_.find({node, static_cast<uint8_t>(text[i])});
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] >= 0) longest = Match{begin, i + 1 - begin, ids_[node]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace plinth::models
