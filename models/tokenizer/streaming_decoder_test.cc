#include "plinth/models/tokenizer/streaming_decoder.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/text/utf8.h"
#include "plinth/models/tokenizer/bpe_trainer.h"

namespace plinth::models {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

// Bytes, and a few tokens that begin or end inside characters.
std::unique_ptr<Tokenizer> MakeTokenizer() {
  auto trainer = BpeTrainer::Create({.vocab_size = 300});
  CHECK_OK(trainer);
  CHECK_OK(
      (*trainer)->AddText("😀😁😂🤣 日本語日本 éàüé 😀😁 日本 the the the"));
  auto tokenizer = (*trainer)->Train();
  CHECK_OK(tokenizer);
  return *std::move(tokenizer);
}

// The text is the same as decoding at once, and no chunk but the last holds a replacement that
// the whole does not need.
void CheckStream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamingDecoder stream(&tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    const auto chunk = stream.Push(id);
    ASSERT_OK(chunk);
    ASSERT_EQ(ValidUtf8Prefix(*chunk), chunk->size());
    text += *chunk;
  }
  text += stream.Flush();
  ASSERT_OK_AND_ASSIGN(const std::string bytes, tokenizer.Decode(ids, {}));
  ASSERT_EQ(text, ReplaceInvalidUtf8(bytes));
  ASSERT_EQ(stream.Flush(), "");
}

TEST(StreamingDecoder, CharactersLeaveWithTheirLastByte) {
  const auto tokenizer = MakeTokenizer();
  StreamingDecoder stream(tokenizer.get());
  const std::string family = "👨‍👩‍👧‍👦";  // four emoji joined by U+200D
  std::string text;
  for (size_t i = 0; i < family.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const std::string chunk, stream.Push(static_cast<uint8_t>(family[i])));
    EXPECT_EQ(chunk.find(kReplacementCharacter), std::string::npos);
    text += chunk;
    EXPECT_EQ(text.size(), ValidUtf8Prefix(family.substr(0, i + 1)));
  }
  EXPECT_EQ(text, family);
  EXPECT_EQ(stream.Flush(), "");
}

TEST(StreamingDecoder, ReplacesOnlyWhatCannotComplete) {
  const auto tokenizer = MakeTokenizer();
  StreamingDecoder stream(tokenizer.get());
  EXPECT_THAT(stream.Push(0xF0), IsOkAndHolds(""));
  EXPECT_THAT(stream.Push(0x9F), IsOkAndHolds(""));
  EXPECT_THAT(stream.Push('a'), IsOkAndHolds("\uFFFDa"));
  EXPECT_THAT(stream.Push(0xFF), IsOkAndHolds("\uFFFD"));
  EXPECT_THAT(stream.Push(0xE2), IsOkAndHolds(""));
  EXPECT_THAT(stream.Push(1 << 20),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no token")));
  EXPECT_THAT(stream.Push(0x82), IsOkAndHolds(""));
  EXPECT_THAT(stream.Push(0xAC), IsOkAndHolds("€"));
  EXPECT_THAT(stream.Push(0xE2), IsOkAndHolds(""));
  EXPECT_EQ(stream.Flush(), "\uFFFD");
  EXPECT_THAT(stream.Push(0x82), IsOkAndHolds("\uFFFD"));  // what was flushed is forgotten
}

TEST(StreamingDecoder, SkipsSpecialTokensWhenAsked) {
  const auto tokenizer = MakeTokenizer();
  const int32_t end = tokenizer->end_of_text_id().value();
  StreamingDecoder quiet(tokenizer.get(), {.skip_special = true}), loud(tokenizer.get());
  EXPECT_THAT(quiet.Push(end), IsOkAndHolds(""));
  EXPECT_THAT(loud.Push(end), IsOkAndHolds("<|endoftext|>"));
}

TEST(StreamingDecoder, EqualsDecodingAtOnce) {
  const auto tokenizer = MakeTokenizer();
  std::mt19937 rng(4);
  for (int round = 0; round < 3000; ++round) {
    std::vector<int32_t> ids(rng() % 40);
    for (int32_t& id : ids) {
      // Mostly bytes of multi-byte characters, where the borders matter.
      const int32_t all =
          static_cast<int32_t>(rng() % static_cast<unsigned>(tokenizer->vocab_size()));
      id = rng() % 2 == 0 ? all : static_cast<int32_t>(0x80 + rng() % 128);
    }
    CheckStream(*tokenizer, ids);
  }
}

// Any text, cut off after any number of tokens.
TEST(StreamingDecoder, TruncatedTextEndsInAtMostOneReplacement) {
  const auto tokenizer = MakeTokenizer();
  ASSERT_OK_AND_ASSIGN(
      auto ids,
      tokenizer->Encode("héllo 👩🏽‍💻 日本語 👨‍👩‍👧‍👦 🇩🇪", {}));
  while (!ids.empty()) {
    CheckStream(*tokenizer, ids);
    StreamingDecoder stream(tokenizer.get());
    for (const int32_t id : ids) {
      ASSERT_OK_AND_ASSIGN(const std::string chunk, stream.Push(id));
      ASSERT_EQ(chunk.find(kReplacementCharacter), std::string::npos);
    }
    EXPECT_THAT(stream.Flush(), ::testing::AnyOf("", "\uFFFD"));
    ids.pop_back();
  }
}

}  // namespace
}  // namespace plinth::models
