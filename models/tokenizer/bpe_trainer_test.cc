#include "plinth/models/tokenizer/bpe_trainer.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::models {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

std::unique_ptr<Tokenizer> Train(BpeTrainerOptions options, const std::vector<std::string>& texts) {
  auto trainer = BpeTrainer::Create(std::move(options));
  CHECK_OK(trainer);
  for (const std::string& text : texts) CHECK_OK((*trainer)->AddText(text));
  auto tokenizer = (*trainer)->Train();
  CHECK_OK(tokenizer);
  return *std::move(tokenizer);
}

// The definition: count all pairs anew for every merge. Returns the tokens after the bytes.
std::vector<std::string> Reference(const std::vector<std::string>& pieces, size_t most) {
  std::vector<std::string> tokens;
  std::map<std::string, int32_t> ids;
  for (int b = 0; b < 256; ++b) {
    tokens.emplace_back(1, static_cast<char>(b));
    ids[tokens.back()] = b;
  }
  std::vector<std::vector<int32_t>> words;
  for (const std::string& piece : pieces) {
    words.emplace_back();
    for (const char c : piece) words.back().push_back(static_cast<uint8_t>(c));
  }
  while (tokens.size() < most) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    std::pair<int32_t, int32_t> best;
    int64_t best_count = 1;
    for (const auto& [pair, count] : counts) {  // in increasing order of pairs
      if (count > best_count) {
        best = pair;
        best_count = count;
      }
    }
    if (best_count < 2) break;
    const std::string bytes = tokens[best.first] + tokens[best.second];
    const auto [it, added] = ids.emplace(bytes, static_cast<int32_t>(tokens.size()));
    if (added) tokens.push_back(bytes);
    for (auto& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.size(); ++i) {
        if (i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second) {
          merged.push_back(it->second);
          ++i;
        } else {
          merged.push_back(word[i]);
        }
      }
      word = merged;
    }
  }
  return {tokens.begin() + 256, tokens.end()};
}

std::vector<std::string> Learned(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (int32_t id = 256; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsSpecial(id)) tokens.emplace_back(*tokenizer.BytesOfId(id));
  }
  return tokens;
}

// Pair counts in the reference include overlaps ("aaa" holds "aa" twice), as in the trainer.
TEST(BpeTrainer, EqualsTheDefinition) {
  std::mt19937 rng(8);
  for (int round = 0; round < 150; ++round) {
    std::vector<std::string> pieces;
    std::string text;
    for (int i = 0; i < 40; ++i) {
      std::string word(1 + rng() % 12, ' ');
      for (char& c : word) c = static_cast<char>('a' + rng() % (1 + round % 4));
      pieces.push_back(word);
      text += word + "\n";
    }
    const auto tokenizer =
        Train({.vocab_size = 300, .special_tokens = {}, .patterns = {"[a-z]+"}}, {text});
    std::vector<std::string> all = pieces;
    for (size_t i = 0; i < pieces.size(); ++i) all.push_back("\n");
    ASSERT_EQ(Learned(*tokenizer), Reference(all, 300)) << text;
  }
}

TEST(BpeTrainer, OrderOfTextsDoesNotMatter) {
  const std::vector<std::string> texts = {"low lower lowest ", "new newer newest ",
                                          "wide wider widest "};
  const auto forward = Train({.vocab_size = 290}, texts);
  const auto backward = Train({.vocab_size = 290}, {texts[2], texts[1], texts[0]});
  EXPECT_EQ(forward->ToJson(), backward->ToJson());
  EXPECT_GT(forward->vocab_size(), 265);
}

TEST(BpeTrainer, IdsAreBytesMergesSpecials) {
  const auto tokenizer = Train({.vocab_size = 260, .special_tokens = {"<|endoftext|>", "<|user|>"}},
                               {"abab abab abab"});
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  for (int b = 0; b < 256; ++b) {
    EXPECT_EQ(tokenizer->BytesOfId(b), std::string(1, static_cast<char>(b)));
  }
  EXPECT_EQ(tokenizer->BytesOfId(256), "ab");
  EXPECT_EQ(tokenizer->SpecialId("<|endoftext|>"), 258);
  EXPECT_EQ(tokenizer->SpecialId("<|user|>"), 259);
}

TEST(BpeTrainer, StopsWhenNoPairIsWorthIt) {
  const auto tokenizer = Train({.vocab_size = 5000}, {"abc abc"});
  EXPECT_EQ(Learned(*tokenizer), (std::vector<std::string>{"ab", "abc"}));
  EXPECT_EQ(tokenizer->end_of_text_id(), 258);
}

TEST(BpeTrainer, SpecialTokensInTheTextAreNotLearned) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "word<|endoftext|>stopword stop";
  const auto tokenizer =
      Train({.vocab_size = 400, .special_tokens = {"<|endoftext|>", "stop"}}, {text});
  for (const std::string& token : Learned(*tokenizer)) {
    EXPECT_EQ(token.find("<|"), std::string::npos) << token;
    EXPECT_NE(token, "stop");
  }
}

TEST(BpeTrainer, TakesAnyBytes) {
  std::mt19937 rng(12);
  std::string text(20000, ' ');
  for (char& c : text) c = static_cast<char>(rng() % 256);
  text += std::string(5000, 'a') + text;
  const auto tokenizer = Train({.vocab_size = 400}, {text});
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, {}));
  EXPECT_THAT(tokenizer->Decode(ids, {}), ::plinth::testing::IsOkAndHolds(text));
  EXPECT_LT(ids.size(), text.size());
}

TEST(BpeTrainer, RefusesWhatCannotWork) {
  const auto invalid = [](BpeTrainerOptions options, const std::string& message) {
    EXPECT_THAT(BpeTrainer::Create(std::move(options)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  invalid({.vocab_size = 257}, "vocab_size: expected 258 (256 bytes, 1 special tokens, 1 merge)");
  invalid({.vocab_size = -1}, "got -1");
  invalid({.vocab_size = kMaxTokenId + 2}, "vocab_size");
  invalid({.vocab_size = 300, .special_tokens = {"x"}}, "special token \"x\"");
  invalid({.vocab_size = 300, .special_tokens = {"<a>", "<a>"}},
          "special token \"<a>\" is listed twice");
  invalid({.vocab_size = 300, .patterns = {"("}}, "does not compile");
  ASSERT_OK_AND_ASSIGN(const auto trainer, BpeTrainer::Create({.vocab_size = 300}));
  EXPECT_THAT(trainer->Train(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
}

}  // namespace
}  // namespace plinth::models
