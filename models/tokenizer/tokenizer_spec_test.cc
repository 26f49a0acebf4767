#include "plinth/models/tokenizer/tokenizer_spec.h"

#include <boost/json.hpp>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/models/tokenizer/byte_alphabet.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::models {
namespace {

namespace json = ::boost::json;

using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;

// A file with every part that is understood.
json::value FullDocument() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    spec.vocab.push_back(SpellBytes({&c, 1}));
  }
  spec.vocab.push_back("he");
  spec.merges = {{'h', 'e'}};
  spec.patterns = {R"(\s+)"};
  spec.gpt2_pattern = false;
  spec.ignore_merges = true;
  spec.nfc = true;
  spec.added = {
      {.id = 257, .content = "<|endoftext|>", .special = true, .normalized = false},
      {.id = 258, .content = "plain", .special = false, .normalized = true, .lstrip = true}};
  json::value document = json::parse(TokenizerJson(spec));
  document.as_object()["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [
      {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
      {"type": "TemplateProcessing",
       "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
                  {"Sequence": {"id": "A", "type_id": 0}},
                  {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}],
       "pair": [],
       "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [257],
                                            "tokens": ["<|endoftext|>"]}}}]})");
  return document;
}

absl::StatusOr<TokenizerSpec> Parse(const json::value& document) {
  return ParseTokenizerJson(std::string(json::serialize(document)));
}

// Replaces what `pointer` names in an object or array, or adds it to an object.
void Set(json::value& document, const std::string& pointer, json::value value) {
  const size_t slash = pointer.rfind('/');
  json::value& parent = document.at_pointer(pointer.substr(0, slash));
  const std::string key = pointer.substr(slash + 1);
  if (parent.is_object()) {
    parent.get_object()[key] = std::move(value);
  } else {
    parent.as_array().at(std::stoul(key)) = std::move(value);
  }
}

TEST(TokenizerSpec, ReadsEveryPart) {
  ASSERT_OK_AND_ASSIGN(const TokenizerSpec spec, Parse(FullDocument()));
  EXPECT_EQ(spec.vocab.size(), 257u);
  EXPECT_EQ(spec.vocab[' '], "Ġ");
  EXPECT_THAT(spec.merges, ElementsAre(std::pair<int32_t, int32_t>('h', 'e')));
  EXPECT_TRUE(spec.ignore_merges);
  EXPECT_FALSE(spec.gpt2_pattern);
  EXPECT_FALSE(spec.add_prefix_space);
  EXPECT_THAT(spec.patterns, ElementsAre(R"(\s+)"));
  ASSERT_EQ(spec.added.size(), 2u);
  EXPECT_TRUE(spec.added[0].special && !spec.added[0].normalized);
  EXPECT_TRUE(!spec.added[1].special && spec.added[1].normalized);
  EXPECT_TRUE(spec.added[1].lstrip && !spec.added[1].rstrip && !spec.added[0].lstrip);
  EXPECT_TRUE(spec.nfc);
  EXPECT_THAT(spec.prefix_ids, ElementsAre(257));
  EXPECT_THAT(spec.suffix_ids, ElementsAre(257));
}

TEST(TokenizerSpec, WritingIsCanonical) {
  ASSERT_OK_AND_ASSIGN(const TokenizerSpec spec, Parse(FullDocument()));
  const std::string once = TokenizerJson(spec);
  ASSERT_OK_AND_ASSIGN(const TokenizerSpec again, ParseTokenizerJson(once));
  EXPECT_EQ(TokenizerJson(again), once);
  // Order of the vocabulary, spelling of merges and defaults that are left out make no difference.
  json::value other = FullDocument();
  json::object reversed;
  const json::object vocab = other.at_pointer("/model/vocab").as_object();
  for (auto it = vocab.end(); it != vocab.begin();) {
    --it;
    reversed[it->key()] = it->value();
  }
  other.at_pointer("/model/vocab") = reversed;
  other.at_pointer("/model/merges/0") = json::array{"h", "e"};
  other.at_pointer("/model").as_object().erase("dropout");
  ASSERT_OK_AND_ASSIGN(const TokenizerSpec same, Parse(other));
  EXPECT_EQ(TokenizerJson(same), once);
}

TEST(TokenizerSpec, ErrorsNameTheKey) {
  const std::string steps = "/pre_tokenizer/pretokenizers";
  const struct {
    std::string at;    // JSON pointer of what is replaced, or added if absent
    const char* with;  // JSON
    absl::StatusCode code;
    const char* message;
  } kCases[] = {
      {"/version", "2", kInvalid, "version: expected a string, got 2"},
      {"/version", "\"2.0\"", kUnsupported, "version: \"2.0\" is not supported, only 1.0"},
      {"/truncation", "{\"max_length\": 5}", kUnsupported, "truncation: an object is not"},
      {"/padding", "true", kUnsupported, "padding: true"},
      {"/surprise", "1", kUnsupported, "surprise: this key is unknown"},
      {"/normalizer", "{\"type\": \"NFKC\"}", kUnsupported,
       "normalizer.type: \"NFKC\" is not supported, only NFC"},
      {"/normalizer", "{\"type\": \"NFC\", \"form\": 1}", kUnsupported, "normalizer.form"},
      {"/normalizer", "{\"type\": \"Sequence\"}", kInvalid, "normalizer.normalizers: is missing"},
      {"/normalizer", "{\"type\": \"Sequence\", \"normalizers\": [1]}", kInvalid,
       "normalizer.normalizers[0]: expected an object"},
      {"/normalizer",
       "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
       "\"Lowercase\"}]}",
       kUnsupported, "normalizer.normalizers[1].type: \"Lowercase\""},
      {"/decoder", "null", kInvalid, "decoder: is missing"},
      {"/decoder", "{\"type\": \"WordPiece\"}", kUnsupported, "decoder.type: \"WordPiece\""},
      {"/pre_tokenizer", "null", kInvalid, "pre_tokenizer: is missing"},
      {"/pre_tokenizer", "[]", kInvalid, "pre_tokenizer: expected an object, got an array"},
      {"/pre_tokenizer", "{\"type\": \"Whitespace\"}", kUnsupported,
       "pre_tokenizer.type: \"Whitespace\""},
      {steps, "[]", kInvalid, "pre_tokenizer.pretokenizers: expected at least one step"},
      {steps + "/0/type", "\"Digits\"", kUnsupported, "pretokenizers[0].type: \"Digits\""},
      {steps + "/1/type", "\"Metaspace\"", kUnsupported, "pretokenizers[1].type: \"Metaspace\""},
      {steps + "/0/behavior", "\"Removed\"", kUnsupported,
       "pretokenizers[0].behavior: \"Removed\""},
      {steps + "/0/invert", "true", kUnsupported, "pretokenizers[0].invert"},
      {steps + "/0/pattern", "{\"String\": \" \"}", kInvalid,
       "pretokenizers[0].pattern.Regex: is missing"},
      {steps + "/1/add_prefix_space", "true", kUnsupported, "pretokenizers[1].add_prefix_space"},
      {steps + "/1/add_prefix_space", "1", kInvalid, "expected true or false, got 1"},
      {"/model/type", "\"Unigram\"", kUnsupported, "model.type: \"Unigram\""},
      {"/model/dropout", "0.1", kUnsupported, "model.dropout"},
      {"/model/byte_fallback", "true", kUnsupported, "model.byte_fallback"},
      {"/model/end_of_word_suffix", "\"</w>\"", kUnsupported, "model.end_of_word_suffix"},
      {"/model/continuing_subword_prefix", "\"##\"", kUnsupported,
       "model.continuing_subword_prefix"},
      {"/model/ignore_merges", "\"yes\"", kInvalid, "model.ignore_merges: expected true or false"},
      {"/model/novelty", "{}", kUnsupported, "model.novelty: this key is unknown"},
      {"/model/vocab", "[]", kInvalid, "model.vocab: expected an object"},
      {"/model/vocab/he", "\"256\"", kInvalid, "model.vocab[\"he\"]: expected an integer"},
      {"/model/vocab/he", "-1", kInvalid, "model.vocab[\"he\"]: expected an integer from 0"},
      {"/model/vocab/he", "2097152", kInvalid, "got 2097152"},
      {"/model/vocab/he", "18446744073709551615", kInvalid, "model.vocab[\"he\"]"},
      {"/model/vocab/he", "1e2", kInvalid, "model.vocab[\"he\"]"},
      {"/model/vocab/he", "7", kInvalid, "model.vocab[\"he\"]: id 7 already belongs to"},
      {"/model/vocab/", "300", kInvalid, "a token is empty"},
      {"/model/merges", "{}", kInvalid, "model.merges: expected an array"},
      {"/model/merges/0", "\"h\"", kInvalid, "model.merges[0]: expected two tokens"},
      {"/model/merges/0", "\"h e l\"", kInvalid, "model.merges[0]: expected two tokens"},
      {"/model/merges/0", "[\"h\", 5]", kInvalid, "model.merges[0]: expected two tokens"},
      {"/model/merges/0", "\"h absent\"", kInvalid,
       "model.merges[0]: \"absent\" is not in model.vocab"},
      {"/added_tokens", "{}", kInvalid, "added_tokens: expected an array"},
      {"/added_tokens/0/id", "null", kInvalid, "added_tokens[0].id: is missing"},
      {"/added_tokens/0/id", "-5", kInvalid, "added_tokens[0].id: expected an integer"},
      {"/added_tokens/0/lstrip", "1", kInvalid, "added_tokens[0].lstrip: expected true or false"},
      {"/added_tokens/1/single_word", "1", kInvalid, "single_word: expected true or false"},
      {"/added_tokens/1/color", "3", kUnsupported, "added_tokens[1].color: this key is unknown"},
      {"/post_processor/type", "\"BertProcessing\"", kUnsupported,
       "post_processor.type: \"BertProcessing\""},
      {"/post_processor/processors/0/type", "\"Sequence\"", kUnsupported,
       "processors[0].type: \"Sequence\""},
      {"/post_processor/processors/1/single", "[]", kInvalid, "single: holds no Sequence"},
      {"/post_processor/processors/1/special_tokens", "{}", kInvalid, "<|endoftext|>: is missing"},
      {"/post_processor/processors/1/special_tokens/<|endoftext|>/ids", "[1.5]", kInvalid,
       "token ids"},
  };
  for (const auto& c : kCases) {
    json::value document = FullDocument();
    Set(document, c.at, json::parse(c.with));
    EXPECT_THAT(Parse(document), StatusIs(c.code, HasSubstr(c.message))) << c.at << " = " << c.with;
  }
  for (const char* text : {"", "[1", "nul", "{\"version\": \"1.0\",}", "\xFF", "{} {}"}) {
    EXPECT_THAT(ParseTokenizerJson(text), StatusIs(kInvalid, HasSubstr("not valid JSON"))) << text;
  }
  EXPECT_THAT(ParseTokenizerJson(std::string(100000, '[')),
              StatusIs(kInvalid, HasSubstr("not valid JSON")));
  EXPECT_THAT(ParseTokenizerJson("[]"),
              StatusIs(kInvalid, "document: expected an object, got an array"));
}

// Whatever damage a file suffers, it is refused or it gives a tokenizer that works.
TEST(TokenizerSpec, DamagedFilesAreRefusedOrWork) {
  const std::string good = json::serialize(FullDocument());
  std::mt19937 rng(9);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bad = good;
    for (size_t n = 1 + rng() % 3; n > 0; --n) {
      const size_t at = rng() % bad.size();
      switch (rng() % 4) {
        case 0:
          bad[at] = static_cast<char>(rng() % 256);
          break;
        case 1:
          bad.erase(at, 1 + rng() % 20);
          break;
        case 2:
          bad.insert(at, bad.substr(rng() % bad.size(), rng() % 20));
          break;
        default:
          bad[at] = "0123456789{}[]\",:"[rng() % 17];
      }
    }
    const auto tokenizer = Tokenizer::Parse(bad);
    if (!tokenizer.ok()) {
      ++refused;
      continue;
    }
    const std::string text = "he said \xFF 12 <|endoftext|>";
    const auto ids = (*tokenizer)->Encode(text, {.allow_special = true});
    ASSERT_OK(ids);
    const auto back = (*tokenizer)->Decode(*ids, {});
    ASSERT_OK(back);
    EXPECT_THAT(*back, ::testing::AnyOf(text, " " + text)) << bad;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace plinth::models
