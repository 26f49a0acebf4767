#include "plinth/models/tokenizer/tokenizer.h"

#include <unistd.h>

#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/models/tokenizer/byte_alphabet.h"

namespace plinth::models {
namespace {

using ::plinth::testing::IsOkAndHolds;
using ::plinth::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Bytes 0..255, " t" 256, "he" 257, " the" 258, <|endoftext|> 259, <|user|> 260, "mark" 261.
TokenizerSpec SmallSpec() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    spec.vocab.push_back(SpellBytes({&c, 1}));
  }
  for (const char* token : {" t", "he", " the"}) spec.vocab.push_back(SpellBytes(token));
  spec.merges = {{' ', 't'}, {'h', 'e'}, {256, 257}};
  spec.added = {{.id = 259, .content = "<|endoftext|>", .special = true},
                {.id = 260, .content = "<|user|>", .special = true},
                {.id = 261, .content = "mark", .special = false}};
  return spec;
}

std::unique_ptr<Tokenizer> Make(TokenizerSpec spec) {
  auto made = Tokenizer::Create(std::move(spec));
  CHECK_OK(made);
  return *std::move(made);
}

// More of this is compared with Hugging Face's own in huggingface_test.py.
TEST(Tokenizer, TokensMayTakeWhiteSpaceAlong) {
  TokenizerSpec spec = SmallSpec();
  spec.added.push_back({.id = 262, .content = "<l>", .lstrip = true});
  spec.added.push_back({.id = 263, .content = "<r>", .special = true, .rstrip = true});
  const auto tokenizer = Make(std::move(spec));
  EXPECT_THAT(tokenizer->Encode("a \n\u3000<l> b", {}),
              IsOkAndHolds(ElementsAre('a', 262, ' ', 'b')));
  EXPECT_THAT(tokenizer->Encode("<r> \t<l><r>  ", {.allow_special = true}),
              IsOkAndHolds(ElementsAre(263, 262, 263)));
  EXPECT_THAT(tokenizer->Encode(" <l>", {}), IsOkAndHolds(ElementsAre(262)));
}

TEST(Tokenizer, TokensMayAskToStandAlone) {
  TokenizerSpec spec = SmallSpec();
  spec.added.push_back({.id = 262, .content = "<w>", .single_word = true});
  spec.added.push_back({.id = 263, .content = "<w", .special = true});
  const auto tokenizer = Make(std::move(spec));
  for (const char* text : {"<w>", "<w> ", ".<w>.", "\xFF<w>\xC3", "\u00BD<w>\u2460"}) {
    EXPECT_THAT(tokenizer->Encode(text, {}), IsOkAndHolds(Contains(262))) << text;
  }
  for (const char* text : {"a<w>", "<w>_", "<w>\u00E9", "\u0663<w>", "<w>\u24B6", "\u200D<w>"}) {
    EXPECT_THAT(tokenizer->Encode(text, {.allow_special = true}),
                IsOkAndHolds(Not(Contains(AnyOf(262, 263)))))
        << text;
  }
  EXPECT_THAT(tokenizer->Encode("a<w> <w>", {}),
              IsOkAndHolds(ElementsAre('a', '<', 'w', '>', ' ', 262)));
  const auto again = Tokenizer::Parse(tokenizer->ToJson());
  CHECK_OK(again);
  EXPECT_THAT((*again)->Encode("a<w>", {}), IsOkAndHolds(ElementsAre('a', '<', 'w', '>')));
}

TEST(Tokenizer, NormalizesAllButTokensThatAreNot) {
  TokenizerSpec spec = SmallSpec();
  spec.nfc = true;
  spec.added.push_back({.id = 262, .content = "e\u0301", .normalized = false});
  spec.added.push_back({.id = 263, .content = "o\u0301", .normalized = true});
  const auto tokenizer = Make(std::move(spec));
  const auto decoded = [&](const std::string& text) {
    return *tokenizer->Decode(*tokenizer->Encode(text, {}), {});
  };
  EXPECT_EQ(decoded("a\u0301 \xFF\u0301"), "\u00E1 \xFF\u0301");
  EXPECT_THAT(tokenizer->Encode("e\u0301o\u0301\u00F3", {}),
              IsOkAndHolds(ElementsAre(262, 263, 263)));
}

TEST(Tokenizer, AnAddedTokenMustFitAlsoInItsNormalForm) {
  TokenizerSpec spec = SmallSpec();
  spec.nfc = true;
  std::string content;
  for (int i = 0; i < 160; ++i) content += "\uFB2C";  // three characters in form C
  spec.added.push_back({.id = 262, .content = content, .normalized = true});
  EXPECT_THAT(Tokenizer::Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("length must be from 1")));
}

std::string RandomText(std::mt19937& rng) {
  static constexpr std::string_view kParts[] = {"the ",
                                                " the",
                                                "é",
                                                "日本",
                                                "😀",
                                                "\n\n",
                                                "12345",
                                                "'ll",
                                                "<|endoftext|>",
                                                "<|user|>",
                                                "mark",
                                                "\xFF",
                                                "\xE2\x82",
                                                "\xF0\x9F",
                                                "\xED\xA0\x80",
                                                "  ",
                                                std::string_view("\0", 1)};
  std::string text;
  for (size_t n = rng() % 30; n > 0; --n) {
    if (rng() % 3 == 0) {
      text.push_back(static_cast<char>(rng() % 256));
    } else {
      text.append(kParts[rng() % std::size(kParts)]);
    }
  }
  return text;
}

TEST(Tokenizer, MergesByRankWithinPieces) {
  const auto tokenizer = Make(SmallSpec());
  EXPECT_THAT(tokenizer->Encode("the the", {}), IsOkAndHolds(ElementsAre('t', 257, 258)));
  EXPECT_THAT(tokenizer->Encode("", {}), IsOkAndHolds(ElementsAre()));
  EXPECT_EQ(tokenizer->vocab_size(), 262);
}

TEST(Tokenizer, RoundTripsAnyBytes) {
  std::mt19937 rng(1);
  for (const bool ignore_merges : {false, true}) {
    TokenizerSpec spec = SmallSpec();
    spec.ignore_merges = ignore_merges;
    const auto tokenizer = Make(spec);
    for (int round = 0; round < 3000; ++round) {
      const std::string text = RandomText(rng);
      for (const bool allow_special : {false, true}) {
        const auto ids = tokenizer->Encode(text, {.allow_special = allow_special});
        ASSERT_OK(ids);
        ASSERT_THAT(tokenizer->Decode(*ids, {}), IsOkAndHolds(text));
        if (allow_special) continue;
        for (const int32_t id : *ids) ASSERT_FALSE(tokenizer->IsSpecial(id)) << text;
      }
    }
  }
}

TEST(Tokenizer, OnlyTrustedTextBecomesSpecial) {
  const auto tokenizer = Make(SmallSpec());
  EXPECT_THAT(tokenizer->Encode("a<|user|>mark<|endoftext|>", {.allow_special = true}),
              IsOkAndHolds(ElementsAre('a', 260, 261, 259)));
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode("<|user|>mark", {}));
  EXPECT_EQ(ids.size(), std::string("<|user|>").size() + 1);
  EXPECT_EQ(ids.back(), 261);
}

// A special token that is also in model.vocab is not reached through ignore_merges.
TEST(Tokenizer, WholePiecesAreNotSpecialEither) {
  TokenizerSpec spec = SmallSpec();
  spec.vocab.push_back("<|endoftext|>");
  spec.gpt2_pattern = false;
  spec.ignore_merges = true;
  const auto tokenizer = Make(spec);
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode("<|endoftext|>", {}));
  EXPECT_EQ(ids.size(), kEndOfText.size());
  EXPECT_THAT(tokenizer->Encode(" the", {}), IsOkAndHolds(ElementsAre(258)));
}

TEST(Tokenizer, AddsPrefixSpaceAndTemplate) {
  TokenizerSpec spec = SmallSpec();
  spec.add_prefix_space = true;
  spec.prefix_ids = {260};
  spec.suffix_ids = {259};
  const auto tokenizer = Make(spec);
  EXPECT_THAT(tokenizer->Encode("the", {}), IsOkAndHolds(ElementsAre(258)));
  EXPECT_THAT(tokenizer->Encode(" the", {.add_template = true}),
              IsOkAndHolds(ElementsAre(260, 258, 259)));
  EXPECT_THAT(tokenizer->Encode("", {.add_template = true}), IsOkAndHolds(ElementsAre(260, 259)));
}

TEST(Tokenizer, LooksUpAndDecodes) {
  const auto tokenizer = Make(SmallSpec());
  EXPECT_EQ(tokenizer->BytesOfId(258), " the");
  EXPECT_EQ(tokenizer->BytesOfId(0), std::string_view("\0", 1));
  EXPECT_EQ(tokenizer->IdOfBytes(" the"), 258);
  EXPECT_EQ(tokenizer->IdOfBytes("mark"), 261);
  EXPECT_EQ(tokenizer->IdOfBytes("<|user|>"), std::nullopt);
  EXPECT_EQ(tokenizer->SpecialId("<|user|>"), 260);
  EXPECT_EQ(tokenizer->SpecialId("mark"), std::nullopt);
  EXPECT_EQ(tokenizer->end_of_text_id(), 259);
  EXPECT_THAT(tokenizer->Decode(std::vector<int32_t>{258, 259, 261}, {.skip_special = true}),
              IsOkAndHolds(" themark"));
  for (const int32_t id : {-1, 262, 1 << 30}) {
    EXPECT_EQ(tokenizer->BytesOfId(id), std::nullopt);
    EXPECT_THAT(tokenizer->Decode(std::vector<int32_t>{258, id}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at position 1")));
  }
}

TEST(Tokenizer, SavesLoadsAndIdentifiesItself) {
  const std::string path = ::testing::TempDir() + "/tokenizer.json";
  TokenizerSpec spec = SmallSpec();
  spec.patterns = {R"(\p{N}{1,3})", "\"quoted\"|\\s+"};
  const auto tokenizer = Make(spec);
  ASSERT_OK(tokenizer->Save(path));
  ASSERT_OK_AND_ASSIGN(const auto loaded, Tokenizer::Load(path));
  EXPECT_EQ(loaded->ToJson(), tokenizer->ToJson());
  EXPECT_EQ(loaded->Checksum(), tokenizer->Checksum());
  EXPECT_EQ(loaded->Checksum().size(), 16u);
  spec.merges.pop_back();
  EXPECT_NE(Make(spec)->Checksum(), tokenizer->Checksum());

  EXPECT_THAT(Tokenizer::Load(path + ".absent"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + ".absent: open")));
  const std::string link = path + ".link";
  ASSERT_EQ(symlink("/dev/null", link.c_str()), 0);
  EXPECT_THAT(tokenizer->Save(link),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  EXPECT_THAT(tokenizer->Save("/proc/tokenizer.json"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/proc/tokenizer.json")));
  std::ofstream(path) << "{";
  EXPECT_THAT(Tokenizer::Load(path),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path + ": not valid JSON")));
}

TEST(Tokenizer, RefusesSpecsThatContradictThemselves) {
  const auto refused = [](const auto& edit, const std::string& message) {
    TokenizerSpec spec = SmallSpec();
    edit(spec);
    EXPECT_THAT(Tokenizer::Create(spec),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused([](TokenizerSpec& s) { s.vocab[65].clear(); }, "no ordinary token for byte 0x41");
  refused([](TokenizerSpec& s) { s.vocab[65] = "日"; }, "no ordinary token for byte 0x41");
  refused([](TokenizerSpec& s) { s.vocab[65] = "B"; }, "has two ids");
  refused(
      [](TokenizerSpec& s) {
        s.merges.push_back({'x', 'y'});
      },
      "model.merges[3]: the result \"xy\"");
  refused(
      [](TokenizerSpec& s) {
        s.merges.push_back({' ', 't'});
      },
      "model.merges[3]: the pair is listed");
  refused([](TokenizerSpec& s) { s.merges.push_back({' ', 900}); }, "model.merges[3]: an id");
  refused([](TokenizerSpec& s) { s.merges.push_back({-1, 'a'}); }, "model.merges[3]: an id");
  refused([](TokenizerSpec& s) { s.added[1].id = 258; }, "belongs to another token");
  refused([](TokenizerSpec& s) { s.added[1].id = 259; }, "belongs to another token");
  refused([](TokenizerSpec& s) { s.added[1].content = "mark"; }, "listed twice");
  refused([](TokenizerSpec& s) { s.added[1].content = "he"; }, "model.vocab gives it id 257");
  refused([](TokenizerSpec& s) { s.added[1].content = ""; }, "length must be");
  refused([](TokenizerSpec& s) { s.added[1].content = std::string(513, 'x'); }, "length must be");
  refused([](TokenizerSpec& s) { s.prefix_ids = {262}; }, "id 262 has no token");
  refused([](TokenizerSpec& s) { s.patterns = {"("}; }, "pre_tokenizer");
  // Merges that would let text grow into a special token.
  refused(
      [](TokenizerSpec& s) { s.added.push_back({.id = 257, .content = "he", .special = true}); },
      "model.merges[1]: the result \"he\" is not an ordinary token");
}

TEST(Tokenizer, ThreadsShareOne) {
  const auto tokenizer = Make(SmallSpec());
  std::mt19937 rng(2);
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> want;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(RandomText(rng));
    want.push_back(*Make(SmallSpec())->Encode(texts.back(), {}));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) {
        if (*tokenizer->Encode(texts[i], {}) != want[i]) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace plinth::models
