#include "plinth/models/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/byte_alphabet.h"

namespace plinth::models {
namespace {

using Pair = std::pair<int32_t, int32_t>;

// The counts of one training run. Invariant between merges: pairs_[p].count is the number of
// occurrences of p in all words times their frequency, and each word that holds p is in
// pairs_[p].words (which may list words that held it once).
class MergeLearner {
 public:
  MergeLearner(const absl::flat_hash_map<std::string, int64_t>& pieces,
               const std::vector<std::string>& special)
      : special_(special.begin(), special.end()) {
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.emplace_back(1, static_cast<char>(byte));
      ids_.emplace(tokens_.back(), byte);
    }
    for (const auto& [piece, count] : pieces) AddWord(piece, count);
    for (const auto& [pair, uses] : pairs_) heap_.push({uses.count, pair});
  }

  // Performs the best merge; false if no pair occurs `min_count` times.
  bool Step(int64_t min_count) {
    while (!heap_.empty()) {
      const Entry top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[top.pair].count;
      if (count < top.count) {  // it shrank since: back to where it belongs
        if (count > 0) heap_.push({count, top.pair});
        continue;
      }
      if (count > top.count) continue;  // it grew since: a better entry was pushed then
      if (count < min_count) return false;
      std::string bytes = tokens_[top.pair.first] + tokens_[top.pair.second];
      if (special_.contains(bytes)) continue;
      Apply(top.pair, IdOf(std::move(bytes)));
      return true;
    }
    return false;
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<Pair>& merges() const { return merges_; }

 private:
  struct Word {
    int64_t begin;  // in symbols_
    int32_t length;
    int64_t count;
  };
  struct Uses {
    int64_t count = 0;
    std::vector<int32_t> words;
  };
  struct Entry {
    int64_t count;
    Pair pair;
    // The top of a priority_queue is the greatest: the most frequent, then the smallest pair.
    bool operator<(const Entry& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void AddWord(std::string_view piece, int64_t count) {
    const int32_t index = static_cast<int32_t>(words_.size());
    words_.push_back(
        {static_cast<int64_t>(symbols_.size()), static_cast<int32_t>(piece.size()), count});
    for (const char c : piece) symbols_.push_back(static_cast<uint8_t>(c));
    const int32_t* const symbols = &symbols_[words_.back().begin];
    for (int32_t i = 0; i + 1 < words_.back().length; ++i) {
      Count({symbols[i], symbols[i + 1]}, count, index);
    }
  }

  void Count(const Pair& pair, int64_t count, int32_t word) {
    Uses& uses = pairs_[pair];
    uses.count += count;
    if (uses.words.empty() || uses.words.back() != word) uses.words.push_back(word);
  }

  // Two ways to build the same bytes share one token.
  int32_t IdOf(std::string bytes) {
    const auto [it, added] = ids_.try_emplace(bytes, static_cast<int32_t>(tokens_.size()));
    if (added) tokens_.push_back(std::move(bytes));
    return it->second;
  }

  void Apply(const Pair& pair, int32_t result) {
    // A pair returns when a later merge builds one of its halves in another way.
    if (learned_.insert(pair).second) merges_.push_back(pair);
    const std::vector<int32_t> words = std::move(pairs_[pair].words);
    pairs_[pair] = {};
    grown_.clear();
    for (const int32_t word : words) MergeInWord(word, pair, result);
    for (const Pair& grown : grown_) {
      if (const int64_t count = pairs_[grown].count; count > 0) heap_.push({count, grown});
    }
  }

  void MergeInWord(int32_t index, const Pair& pair, int32_t result) {
    Word& word = words_[index];
    int32_t* const symbols = &symbols_[word.begin];
    int32_t kept = 0;
    for (int32_t i = 0; i < word.length; ++i) {
      const bool joins =
          i + 1 < word.length && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      if (!joins) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        Shrink({symbols[kept - 1], pair.first}, pair, word.count);
        Grow({symbols[kept - 1], result}, word.count, index);
      }
      if (i + 2 < word.length) {
        Shrink({pair.second, symbols[i + 2]}, pair, word.count);
        Grow({result, symbols[i + 2]}, word.count, index);
      }
      symbols[kept++] = result;
      ++i;
    }
    word.length = kept;
  }

  // The merged pair itself was cleared as a whole.
  void Shrink(const Pair& pair, const Pair& merged, int64_t count) {
    if (pair != merged) pairs_[pair].count -= count;
  }
  void Grow(const Pair& pair, int64_t count, int32_t word) {
    Count(pair, count, word);
    grown_.insert(pair);
  }

  const absl::flat_hash_set<std::string> special_;
  std::vector<std::string> tokens_;                // [id] raw bytes
  absl::flat_hash_map<std::string, int32_t> ids_;  // inverse of tokens_
  std::vector<Pair> merges_;
  absl::flat_hash_set<Pair> learned_;  // the same pairs
  std::vector<int32_t> symbols_;       // all words, one after the other
  std::vector<Word> words_;
  absl::flat_hash_map<Pair, Uses> pairs_;
  absl::flat_hash_set<Pair> grown_;
  std::priority_queue<Entry> heap_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTrainer>> BpeTrainer::Create(BpeTrainerOptions options) {
  std::unique_ptr<BpeTrainer> self(new BpeTrainer(std::move(options)));
  const BpeTrainerOptions& wanted = self->options_;
  const int64_t least = 257 + static_cast<int64_t>(wanted.special_tokens.size());
  if (wanted.vocab_size < least || wanted.vocab_size > kMaxTokenId + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "vocab_size: expected ", least, " (256 bytes, ", wanted.special_tokens.size(),
        " special tokens, 1 merge) to ", kMaxTokenId + 1, ", got ", wanted.vocab_size));
  }
  absl::flat_hash_set<std::string> seen;
  for (const std::string& token : wanted.special_tokens) {
    if (!seen.insert(token).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("special token \"", token.substr(0, 40), "\" is listed twice"));
    }
    if (token.size() < 2 || token.size() > AddedTokenMatcher::kMaxContentBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("special token \"", token.substr(0, 40), "\": expected 2 to ",
                       AddedTokenMatcher::kMaxContentBytes, " bytes"));
    }
    self->special_.Add(token, 0);
  }
  std::vector<std::string> patterns = wanted.patterns;
  if (patterns.empty()) patterns.emplace_back(kGpt2Pattern);
  ASSIGN_OR_RETURN(self->pre_tokenizer_, PreTokenizer::Create(std::move(patterns)));
  return self;
}

absl::Status BpeTrainer::AddText(std::string_view text) {
  const auto count = [&](std::string_view piece) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kMaxPieceBytes))) {
      const std::string_view part = piece.substr(0, kMaxPieceBytes);
      ++piece_counts_[absl::string_view(part.data(), part.size())];
    }
  };
  return special_.Walk(
      text, [&](std::string_view stretch) { return pre_tokenizer_->Split(stretch, count); },
      [](int32_t) { return absl::OkStatus(); });
}

absl::StatusOr<std::unique_ptr<Tokenizer>> BpeTrainer::Train(const Progress& progress) const {
  if (piece_counts_.empty()) {
    return absl::InvalidArgumentError("the training text is empty");
  }
  MergeLearner learner(piece_counts_, options_.special_tokens);
  const size_t wanted = static_cast<size_t>(options_.vocab_size) - options_.special_tokens.size();
  while (learner.tokens().size() < wanted && learner.Step(options_.min_pair_count)) {
    if (progress && learner.merges().size() % 16 == 0) {
      progress(static_cast<int64_t>(learner.tokens().size()) - 256,
               static_cast<int64_t>(wanted) - 256);
    }
  }
  TokenizerSpec spec;
  spec.patterns = options_.patterns;
  spec.gpt2_pattern = options_.patterns.empty();
  spec.merges = learner.merges();
  for (const std::string& token : learner.tokens()) spec.vocab.push_back(SpellBytes(token));
  for (const std::string& token : options_.special_tokens) {
    spec.added.push_back({.id = static_cast<int32_t>(spec.vocab.size()),
                          .content = token,
                          .special = true,
                          .normalized = false});
    spec.vocab.push_back(token);
  }
  return Tokenizer::Create(std::move(spec));
}

}  // namespace plinth::models
