#include "plinth/infer/serve/openai/call.h"

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/infer/serve/testing/tiny_tokenizer.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CallTest : public ::testing::Test {
 protected:
  absl::StatusOr<Call> Completion(const std::string& body) {
    return ParseCompletion(body, *tokenizer_, {.chat_max_tokens = 77, .seed = 5});
  }
  absl::StatusOr<Call> Chat(const std::string& body) {
    return ParseChat(body, *tokenizer_, {.chat_max_tokens = 77, .seed = 5});
  }
  std::vector<int32_t> Ids(const std::string& text) { return *tokenizer_->Encode(text, {}); }

  const std::unique_ptr<models::Tokenizer> tokenizer_ = testing::TinyTokenizer();
};

TEST_F(CallTest, CompletionDefaultsAreTheApis) {
  ASSERT_OK_AND_ASSIGN(const Call call, Completion(R"({"prompt": "the stone"})"));
  EXPECT_EQ(call.generate.prompt, Ids("the stone"));
  EXPECT_EQ(call.generate.max_tokens, 16);
  EXPECT_EQ(call.generate.sampling.temperature, 1);
  EXPECT_EQ(call.generate.sampling.top_p, 1);
  EXPECT_EQ(call.generate.sampling.seed, 5u);
  EXPECT_FALSE(call.generate.top_logprobs.has_value());
  EXPECT_FALSE(call.stream || call.echo || call.chat || call.include_usage);
}

TEST_F(CallTest, EveryFieldArrives) {
  ASSERT_OK_AND_ASSIGN(const Call call, Completion(R"({
      "model": "m", "prompt": ["x"], "max_tokens": 0, "temperature": 0.5, "top_p": 0.9,
      "top_k": -1, "min_p": 0.1, "seed": -3, "stop": ["a", "b"], "echo": true, "logprobs": 2,
      "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true, "n": 1,
      "best_of": 1, "user": "u", "presence_penalty": 0, "logit_bias": null})"));
  EXPECT_EQ(call.model, "m");
  EXPECT_EQ(call.generate.prompt, Ids("x"));
  EXPECT_EQ(call.prompt_text, "x");
  EXPECT_EQ(call.generate.max_tokens, 0);
  EXPECT_EQ(call.generate.sampling.temperature, 0.5);
  EXPECT_EQ(call.generate.sampling.top_p, 0.9);
  EXPECT_EQ(call.generate.sampling.top_k, 0);
  EXPECT_EQ(call.generate.sampling.min_p, 0.1);
  EXPECT_EQ(call.generate.sampling.seed, static_cast<uint64_t>(-3));
  EXPECT_THAT(call.generate.stop, ElementsAre("a", "b"));
  EXPECT_EQ(call.generate.top_logprobs, 2);
  EXPECT_TRUE(call.generate.prompt_logprobs && call.generate.ignore_end);
  EXPECT_TRUE(call.stream && call.echo && call.include_usage);
}

TEST_F(CallTest, PromptsMayBeIdsOrEmpty) {
  ASSERT_OK_AND_ASSIGN(Call call, Completion(R"({"prompt": [226, 130]})"));
  EXPECT_THAT(call.generate.prompt, ElementsAre(226, 130));
  EXPECT_EQ(call.prompt_text, "\xEF\xBF\xBD");  // what stays of a cut character
  ASSERT_OK_AND_ASSIGN(call, Completion(R"({"prompt": ""})"));
  EXPECT_THAT(call.generate.prompt, ElementsAre(*tokenizer_->end_of_text_id()));
  EXPECT_EQ(call.prompt_text, "");
  // What a user types is never a special token.
  ASSERT_OK_AND_ASSIGN(call, Completion(R"({"prompt": "<|endoftext|>"})"));
  EXPECT_GT(call.generate.prompt.size(), 1u);
}

TEST_F(CallTest, ChatBecomesTurnsThatEndAtTheNextUser) {
  ASSERT_OK_AND_ASSIGN(const Call call, Chat(R"({"messages": [
      {"role": "system", "content": "be brief"},
      {"role": "assistant", "content": " yes"},
      {"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}],
      "logprobs": true, "max_completion_tokens": 9})"));
  EXPECT_EQ(call.prompt_text, "system: be brief\nassistant: yes\nuser: a b\nassistant:");
  EXPECT_EQ(call.generate.prompt, Ids(call.prompt_text));
  EXPECT_THAT(call.generate.stop, ElementsAre("\nuser:"));
  EXPECT_EQ(call.generate.max_tokens, 9);
  EXPECT_EQ(call.generate.top_logprobs, 0);
  ASSERT_OK_AND_ASSIGN(const Call plain,
                       Chat(R"({"messages": [{"role": "user", "content": "x"}]})"));
  EXPECT_EQ(plain.generate.max_tokens, 77);
}

TEST_F(CallTest, StreamOptionsFollowTheTable) {
  const auto usage = [this](const std::string& fields) {
    return Completion(R"({"prompt": "x", )" + fields + "}");
  };
  EXPECT_FALSE(usage(R"("stream": true, "stream_options": {})")->include_usage);
  EXPECT_FALSE(usage(R"("stream": true, "stream_options": null)")->include_usage);
  EXPECT_FALSE(
      usage(R"("stream": true, "stream_options": {"include_usage": false})")->include_usage);
  EXPECT_TRUE(usage(R"("stream": true, "stream_options": {"include_usage": true})")->include_usage);
  EXPECT_THAT(usage(R"("stream_options": {"include_usage": true})"),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("stream_options: ")));
}

TEST_F(CallTest, RefusalsNameTheField) {
  const auto completion = [this](const std::string& body, const std::string& message) {
    const auto call = Completion(body);
    ASSERT_FALSE(call.ok()) << body;
    EXPECT_THAT(std::string(call.status().message()), StartsWith(message)) << body;
  };
  completion("{", "body: not valid JSON");
  completion("[1]", "body: ");
  completion("\"\xff\"", "body: not valid JSON");
  completion(std::string(100, '['), "body: not valid JSON");
  completion("{}", "prompt: is missing");
  completion(R"({"prompt": {"a": 1}})", "prompt: expected a string");
  completion(R"({"prompt": [1, 1000]})", "prompt: expected a string, or token ids below 320");
  completion(R"({"prompt": ["a", "b"]})", "prompt: ");
  completion(R"({"prompt": "x", "temperature": 3})", "temperature: expected a number from 0 to 2");
  completion(R"({"prompt": "x", "temperature": "hot"})", "temperature: ");
  completion(R"({"prompt": "x", "max_tokens": -1})", "max_tokens: ");
  completion(R"({"prompt": "x", "max_tokens": 1.5})", "max_tokens: ");
  completion(R"({"prompt": "x", "logprobs": true})", "logprobs: ");
  completion(R"({"prompt": "x", "n": 2})", "n: 2 is not supported, only 1");
  completion(R"({"prompt": "x", "best_of": "a"})", "best_of: \"a\" is not supported, only 1");
  completion(R"({"prompt": "x", "stop": 7})", "stop: ");
  completion(R"({"prompt": "x", "seed": 1.5})", "seed: ");
  completion(R"({"prompt": "x", "logit_bias": {"5": 1}})", "logit_bias: ");
  completion(R"({"prompt": "x", "top_q": 1})", "top_q: this key is unknown");
  const auto chat = [this](const std::string& body, const std::string& message) {
    const auto call = Chat(body);
    ASSERT_FALSE(call.ok()) << body;
    EXPECT_THAT(std::string(call.status().message()), StartsWith(message)) << body;
  };
  chat(R"({"messages": {"role": "user"}})", "messages: expected an array");
  chat(R"({"messages": []})", "messages: must not be empty");
  chat(R"({"messages": [{"role": "user"}]})", "messages[0].content: is missing");
  chat(R"({"messages": [{"role": "tool", "content": "x"}]})", "messages[0].role: ");
  chat(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content.type: ");
  chat(R"({"messages": [{"role": "user", "content": "x"}], "tools": [{}]})", "tools: ");
  chat(R"({"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2})",
       "top_logprobs: only allowed when logprobs is true");
  chat(R"({"messages": [{"role": "user", "content": "x"}],
          "response_format": {"type": "json_object"}})",
       "response_format.type: ");
}

}  // namespace
}  // namespace plinth::infer
