#include "plinth/infer/serve/openai/reply.h"

#include <algorithm>
#include <boost/json.hpp>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/text/utf8.h"
#include "plinth/infer/engine/stop_text.h"
#include "plinth/infer/serve/testing/tiny_tokenizer.h"
#include "plinth/models/tokenizer/streaming_decoder.h"

namespace plinth::infer {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReplacement[] = "\xEF\xBF\xBD";

json::array Joined(json::array left, const json::array& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class ReplyTest : public ::testing::Test {
 protected:
  struct Stream {
    std::string text;
    json::object logprobs;  // lists, joined
    std::vector<std::string> finish;
    std::vector<std::string> chunks;
  };

  ReplyTest() {
    call_.generate.prompt = *tokenizer_->Encode("the stone", {});
    call_.prompt_text = "the stone";
  }

  TokenEvent Token(int32_t id) {
    TokenEvent token{.id = id};
    if (call_.generate.top_logprobs.has_value()) {
      token.logprobs = Logprobs{.chosen = {id, -0.5 - id}, .top = {{id, -0.5 - id}, {3, -7}}};
      token.logprobs->top.resize(static_cast<size_t>(*call_.generate.top_logprobs));
    }
    return token;
  }

  // The events that the engine sends for a reply of these tokens.
  std::vector<GenerateEvent> Events(const std::vector<int32_t>& ids) {
    std::vector<GenerateEvent> events;
    if (call_.generate.prompt_logprobs) {
      GenerateEvent prompt;
      for (int32_t id : call_.generate.prompt) prompt.prompt.push_back(Token(id));
      prompt.prompt[0].logprobs.reset();
      events.push_back(prompt);
    }
    models::StreamingDecoder decoder(tokenizer_.get(), {.skip_special = true});
    StopText stop(call_.generate.stop);
    for (int32_t id : ids) {
      GenerateEvent event{.token = Token(id), .text = stop.Push(*decoder.Push(id))};
      if (stop.stopped()) event.finish = FinishReason::kStop;
      events.push_back(event);
      if (stop.stopped()) return events;
    }
    if (ids.empty()) events.push_back({});
    events.back().text += stop.Push(decoder.Flush()) + stop.Flush();
    events.back().finish = FinishReason::kLength;
    return events;
  }

  json::object Whole(const std::vector<GenerateEvent>& events) {
    ReplyWriter writer(call_, *tokenizer_, {"id-1", "m", 7});
    for (const GenerateEvent& event : events) writer.Add(event);
    return json::parse(writer.Whole()).as_object();
  }

  Stream Streamed(const std::vector<GenerateEvent>& events) {
    ReplyWriter writer(call_, *tokenizer_, {"id-1", "m", 7});
    Stream stream;
    for (const GenerateEvent& event : events) {
      writer.Add(event);
      const auto chunk = writer.TakeChunk();
      if (!chunk) continue;
      stream.chunks.push_back(*chunk);
      const json::value parsed = json::parse(*chunk);
      const json::object& choice = parsed.at("choices").at(0).as_object();
      stream.text += std::string(call_.chat ? choice.at("delta").at("content").as_string()
                                            : choice.at("text").as_string());
      if (!choice.at("finish_reason").is_null()) {
        stream.finish.emplace_back(choice.at("finish_reason").as_string());
      }
      if (choice.at("logprobs").is_null()) continue;
      for (const auto& list : choice.at("logprobs").as_object()) {
        if (!list.value().is_array()) continue;
        json::value& joined = stream.logprobs[list.key()];
        joined =
            Joined(joined.is_null() ? json::array{} : joined.as_array(), list.value().as_array());
      }
    }
    return stream;
  }

  std::string TextOf(const json::object& whole) {
    const json::object& choice = whole.at("choices").at(0).as_object();
    return std::string(call_.chat ? choice.at("message").at("content").as_string()
                                  : choice.at("text").as_string());
  }

  static int64_t Characters(const std::string& text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  }

  // New tokens, without those that begin in or after the stop text that ended the reply.
  size_t TokensInText(const std::vector<GenerateEvent>& events) {
    std::string text;
    for (const GenerateEvent& event : events) text += event.text;
    const bool stopped = events.back().finish == FinishReason::kStop;
    models::StreamingDecoder decoder(tokenizer_.get(), {.skip_special = true});
    int64_t offset = 0;
    size_t tokens = 0;
    for (const GenerateEvent& event : events) {
      if (!event.token || (stopped && offset >= Characters(text))) continue;
      ++tokens;
      offset += Characters(*decoder.Push(event.token->id));
    }
    return tokens;
  }

  const std::unique_ptr<models::Tokenizer> tokenizer_ = testing::TinyTokenizer();
  Call call_;
};

TEST_F(ReplyTest, WholeCompletionByteForByte) {
  const auto events = Events(*tokenizer_->Encode("a", {}));
  ReplyWriter writer(call_, *tokenizer_, {"id-1", "m", 7});
  for (const GenerateEvent& event : events) writer.Add(event);
  const std::string prompt = std::to_string(call_.generate.prompt.size());
  EXPECT_EQ(writer.Whole(),
            R"({"id":"id-1","object":"text_completion","created":7,"model":"m","choices":[{)"
            R"("index":0,"text":"a","logprobs":null,"finish_reason":"length"}],"usage":{)"
            R"("prompt_tokens":)" +
                prompt + R"(,"completion_tokens":1,"total_tokens":)" +
                std::to_string(call_.generate.prompt.size() + 1) + "}}");
}

TEST_F(ReplyTest, ChatChunksByteForByte) {
  call_.chat = true;
  call_.include_usage = true;
  const auto events = Events(*tokenizer_->Encode("a", {}));
  ReplyWriter writer(call_, *tokenizer_, {"id-1", "m", 7});
  const std::string head =
      R"({"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m","usage":)";
  EXPECT_EQ(writer.FirstChunk(),
            head + R"(null,"choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
                   R"("logprobs":null,"finish_reason":null}]})");
  writer.Add(events[0]);
  EXPECT_EQ(writer.TakeChunk(),
            head + R"(null,"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,)"
                   R"("finish_reason":"length"}]})");
  EXPECT_THAT(writer.UsageChunk(), HasSubstr(R"("completion_tokens":1)"));
  EXPECT_THAT(writer.UsageChunk(), HasSubstr(R"("choices":[])"));
  call_.include_usage = false;
  EXPECT_THAT(*writer.FirstChunk(), Not(HasSubstr("usage")));
}

// Random tokens, so many broken characters, with and without stop texts, echo and
// log-probabilities: the chunks put together are the whole.
TEST_F(ReplyTest, ChunksJoinToTheWhole) {
  for (uint64_t i = 0; i < 64; ++i) {
    SCOPED_TRACE(i);
    call_.chat = i & 1;
    call_.echo = !call_.chat && (i & 2);
    call_.generate.top_logprobs.reset();
    if (i & 4) call_.generate.top_logprobs = i & 8 ? 2 : 0;
    call_.generate.prompt_logprobs = call_.echo && (i & 4);
    call_.generate.stop.clear();
    if (i & 16) call_.generate.stop = {"on", "e s"};
    std::vector<int32_t> ids;
    for (uint64_t t = 0; t < i % 23; ++t) {
      ids.push_back(static_cast<int32_t>(RandomBits(i, 0, t) %
                                         static_cast<uint64_t>(tokenizer_->vocab_size())));
    }
    const auto events = Events(ids);
    const json::object whole = Whole(events);
    const Stream stream = Streamed(events);
    EXPECT_EQ(stream.text, TextOf(whole));
    EXPECT_EQ(stream.finish.size(), 1u);
    EXPECT_EQ(whole.at("choices").at(0).at("finish_reason").as_string(), stream.finish[0]);
    const json::value& logprobs = whole.at("choices").at(0).at("logprobs");
    if (!(i & 4)) {
      EXPECT_TRUE(logprobs.is_null() && stream.logprobs.empty());
      continue;
    }
    const size_t tokens =
        (call_.generate.prompt_logprobs ? call_.generate.prompt.size() : 0) + TokensInText(events);
    if (!call_.chat) {
      for (const json::value& offset : logprobs.at("text_offset").as_array()) {
        EXPECT_LE(offset.as_int64(), Characters(TextOf(whole)));
      }
    }
    for (const auto& list : logprobs.as_object()) {
      if (!list.value().is_array()) continue;
      EXPECT_EQ(list.value().as_array().size(), tokens) << list.key();
      EXPECT_EQ(list.value(), stream.logprobs.at(list.key())) << list.key();
    }
  }
}

TEST_F(ReplyTest, ASplitCharacterIsNeverShownBroken) {
  const std::string emoji = "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";  // a family
  call_.generate.top_logprobs = 0;
  const std::vector<int32_t> ids = *tokenizer_->Encode("a" + emoji + "b", {});
  ASSERT_EQ(ids.size(), emoji.size() + 2);
  const Stream stream = Streamed(Events(ids));
  for (const std::string& chunk : stream.chunks) EXPECT_THAT(chunk, Not(HasSubstr(kReplacement)));
  EXPECT_EQ(stream.text, "a" + emoji + "b");
  EXPECT_EQ(stream.logprobs.at("tokens").at(1).as_string(), "bytes:\\xf0");
  // Bytes of one character share its offset, in characters.
  EXPECT_EQ(json::serialize(stream.logprobs.at("text_offset")), "[0,1,1,1,1,2,2,2,3,3,3,3,4]");
  // Cut within the character: visible, in the last chunk only.
  const Stream cut = Streamed(Events({ids.begin(), ids.begin() + 3}));
  EXPECT_EQ(cut.text, std::string("a") + kReplacement);
  EXPECT_THAT(cut.chunks.front(), Not(HasSubstr(kReplacement)));
  EXPECT_THAT(cut.chunks.back(), HasSubstr(kReplacement));
}

TEST_F(ReplyTest, TokensOfAStopTextHaveNoLogprobs) {
  call_.generate.top_logprobs = 0;
  call_.generate.stop = {"zqz"};
  const std::vector<int32_t> ids = {'a', 'b', 'z', 'q', 'z'};
  const Stream stream = Streamed(Events(ids));
  EXPECT_EQ(stream.text, "ab");
  EXPECT_EQ(json::serialize(stream.logprobs.at("tokens")), R"(["a","b"])");
  EXPECT_EQ(json::serialize(stream.logprobs.at("text_offset")), "[0,1]");
  EXPECT_EQ(stream.chunks.size(), 3u) << "nothing is said while \"z\" and \"zq\" are held back";
  // What is held back and turns out to be no stop text comes with its log-probabilities.
  const Stream released = Streamed(Events({'a', 'z', 'q', 'y'}));
  EXPECT_EQ(released.text, "azqy");
  EXPECT_EQ(json::serialize(released.logprobs.at("text_offset")), "[0,1,2,3]");
  EXPECT_EQ(released.chunks.size(), 2u);
  call_.chat = true;
  EXPECT_EQ(Whole(Events(ids)).at("choices").at(0).at("logprobs").at("content").as_array().size(),
            2u);
}

TEST_F(ReplyTest, EchoScoresThePromptButItsFirstToken) {
  call_.echo = true;
  call_.generate.max_tokens = 0;
  call_.generate.top_logprobs = 1;
  call_.generate.prompt_logprobs = true;
  const json::object whole = Whole(Events({}));
  EXPECT_EQ(TextOf(whole), "the stone");
  const json::value& logprobs = whole.at("choices").at(0).at("logprobs");
  const json::array& tokens = logprobs.at("tokens").as_array();
  ASSERT_EQ(tokens.size(), call_.generate.prompt.size());
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
  EXPECT_TRUE(logprobs.at("top_logprobs").at(0).is_null());
  int64_t offset = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(logprobs.at("text_offset").at(i).as_int64(), offset);
    offset += static_cast<int64_t>(tokens[i].as_string().size());
    if (i == 0) continue;
    EXPECT_EQ(logprobs.at("token_logprobs").at(i).as_double(), -0.5 - call_.generate.prompt[i]);
    EXPECT_EQ(logprobs.at("top_logprobs").at(i).as_object().size(), 1u);
  }
}

TEST_F(ReplyTest, ChatLogprobsHaveBytesAndAlternatives) {
  call_.chat = true;
  call_.generate.top_logprobs = 2;
  const json::object whole = Whole(Events({0xE2, 'a'}));
  EXPECT_EQ(json::serialize(whole.at("choices").at(0).at("logprobs").at("content").at(0)),
            R"({"token":"bytes:\\xe2","logprob":-2.265E2,"bytes":[226],"top_logprobs":[)"
            R"({"token":"bytes:\\xe2","logprob":-2.265E2,"bytes":[226]},)"
            R"({"token":"\u0003","logprob":-7E0,"bytes":[3]}]})");
}

TEST_F(ReplyTest, ErrorsHaveTheEnvelope) {
  const ErrorReply bad = ErrorFor(absl::InvalidArgumentError("messages[0].role: is missing"));
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body,
            R"({"error":{"message":"messages[0].role: is missing","type":"invalid_request_error",)"
            R"("param":"messages[0].role","code":null}})");
  const ErrorReply unknown = ErrorFor(absl::NotFoundError("model: no"), "model_not_found");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr(R"("code":"model_not_found")"));
  EXPECT_EQ(ErrorFor(absl::ResourceExhaustedError("full")).status, 429);
  EXPECT_EQ(ErrorFor(absl::UnavailableError("stopping: soon")).status, 503);
  EXPECT_THAT(ErrorFor(absl::UnavailableError("stopping: soon")).body,
              HasSubstr(R"("param":null)"));
  EXPECT_EQ(ErrorFor(absl::InternalError("x")).status, 500);
  EXPECT_THAT(ErrorFor(absl::InvalidArgumentError("cut \xE2\x82")).body, HasSubstr(kReplacement));
}

}  // namespace
}  // namespace plinth::infer
