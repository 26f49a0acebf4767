#include "plinth/models/tokenizer/added_tokens.h"

#include "plinth/hardware/base/check.h"

namespace plinth::models {

void AddedTokenMatcher::Add(std::string_view content, int32_t id) {
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
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::Find(std::string_view text,
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
