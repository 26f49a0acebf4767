#include "plinth/infer/serve/grpc/service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/infer/serve/grpc/generate.grpc.pb.h"
#include "plinth/infer/serve/testing/raw_client.h"
#include "plinth/infer/serve/testing/served_tiny.h"

namespace plinth::infer {
namespace {

using ::testing::HasSubstr;
using Request = ::plinth::GenerateRequest;

struct Reply {
  std::string text;
  std::vector<Token> prompt, tokens;
  ::plinth::FinishReason finish = NOT_FINISHED;
  Usage usage;
  grpc::Status status;
};

class GrpcTest : public ::testing::Test {
 protected:
  GrpcTest() {
    config::ServeConfig serve;
    serve.set_max_batch(2);
    serve.set_max_queue(2);
    auto engine = served_->NewEngine(serve);
    CHECK_OK(engine);
    engine_ = *std::move(engine);
    metrics_ = std::make_unique<ServeMetrics>(*engine_);
    auto server =
        GrpcServer::Start(*engine_, served_->tokenizer(), *metrics_, {.model_name = "tiny"});
    CHECK_OK(server);
    server_ = *std::move(server);
    grpc::ChannelArguments arguments;
    arguments.SetMaxSendMessageSize(-1);
    stub_ =
        Generate::NewStub(grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                                    grpc::InsecureChannelCredentials(), arguments));
  }

  Reply Call(const Request& request, absl::Duration deadline = absl::Seconds(20)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    const auto reader = stub_->Generate(&context, request);
    Reply reply;
    GenerateReply message;
    while (reader->Read(&message)) {
      EXPECT_EQ(reply.finish, NOT_FINISHED) << "a message after the last";
      reply.text += message.text();
      reply.prompt.insert(reply.prompt.end(), message.prompt().begin(), message.prompt().end());
      if (message.has_token()) reply.tokens.push_back(message.token());
      reply.finish = message.finish();
      if (message.has_usage()) reply.usage = message.usage();
    }
    reply.status = reader->Finish();
    return reply;
  }

  void ExpectAllPagesFree() {
    const absl::Time give_up = absl::Now() + absl::Seconds(10);
    while (engine_->stats().running + engine_->stats().waiting > 0 && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_EQ(engine_->stats().free_pages, engine_->stats().total_pages);
  }

  // The engine's own reply: ids and log-probabilities.
  std::vector<TokenEvent> FromEngine(const GenerateRequest& request) {
    std::mutex mutex;
    std::condition_variable done;
    std::vector<TokenEvent> tokens;
    bool ended = false;
    CHECK_OK(engine_->Submit(request, [&](const GenerateEvent& event) {
      const std::lock_guard lock(mutex);
      if (event.token) tokens.push_back(*event.token);
      ended = event.finish != FinishReason::kNone;
      if (ended) done.notify_one();
    }));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(done.wait_for(lock, std::chrono::seconds(20), [&] { return ended; }));
    return tokens;
  }

  const std::unique_ptr<ServedModel> served_ =
      testing::ServedTiny(::testing::TempDir() + "/grpc_run");
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ServeMetrics> metrics_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Generate::Stub> stub_;
};

TEST_F(GrpcTest, RepliesEqualTheEngines) {
  Request request;
  request.set_text("the old town");
  request.set_max_tokens(20);
  request.mutable_sampling()->set_seed(7);
  request.mutable_sampling()->set_top_p(0.9);
  request.set_ignore_end(true);
  request.set_top_logprobs(2);
  request.set_prompt_logprobs(true);
  const Reply reply = Call(request);
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();

  const std::vector<int32_t> prompt = *served_->EncodePrompt("the old town");
  const auto expected = FromEngine({.prompt = prompt,
                                    .max_tokens = 20,
                                    .sampling = {.top_p = 0.9, .seed = 7},
                                    .ignore_end = true,
                                    .top_logprobs = 2});
  ASSERT_EQ(reply.tokens.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(reply.tokens[i].id(), expected[i].id);
    EXPECT_EQ(reply.tokens[i].logprob(), expected[i].logprobs->chosen.logprob);
    ASSERT_EQ(reply.tokens[i].top_size(), 2);
    EXPECT_EQ(reply.tokens[i].top(1).id(), expected[i].logprobs->top[1].id);
  }
  ASSERT_EQ(reply.prompt.size(), prompt.size());
  EXPECT_FALSE(reply.prompt[0].has_logprob());
  EXPECT_TRUE(reply.prompt[1].has_logprob());
  EXPECT_EQ(reply.finish, LENGTH);
  EXPECT_EQ(reply.usage.prompt_tokens(), static_cast<int64_t>(prompt.size()));
  EXPECT_EQ(reply.usage.generated_tokens(), 20);

  // Ids instead of text give the same reply.
  request.mutable_tokens()->mutable_ids()->Assign(prompt.begin(), prompt.end());
  EXPECT_EQ(Call(request).text, reply.text);
}

TEST_F(GrpcTest, RefusalsHaveTheirCodes) {
  const auto refused = [this](const Request& request, grpc::StatusCode code, const char* part) {
    const Reply reply = Call(request);
    EXPECT_EQ(reply.status.error_code(), code);
    EXPECT_THAT(reply.status.error_message(), HasSubstr(part));
  };
  Request request;
  request.set_text("x");
  request.set_model("other");
  refused(request, grpc::StatusCode::NOT_FOUND, "\"tiny\"");
  request.set_model("tiny");
  request.set_top_logprobs(21);
  refused(request, grpc::StatusCode::INVALID_ARGUMENT, "top_logprobs");
  request.clear_top_logprobs();
  request.mutable_sampling()->set_top_p(2);
  refused(request, grpc::StatusCode::INVALID_ARGUMENT, "top_p must be in (0, 1], got 2");
  request.clear_sampling();
  // 11 MiB arrive and are judged; 17 MiB are not taken, and the limit is stated.
  request.mutable_tokens()->mutable_ids()->Resize(11 << 20, 1);
  refused(request, grpc::StatusCode::INVALID_ARGUMENT, "the prompt has 11534336 tokens");
  request.mutable_tokens()->mutable_ids()->Resize(17 << 20, 1);
  refused(request, grpc::StatusCode::RESOURCE_EXHAUSTED, "16777216");
  metrics_->SetDraining();
  request.set_text("x");
  refused(request, grpc::StatusCode::UNAVAILABLE, "stopping");
}

TEST_F(GrpcTest, CancellingAndDeadlinesEndTheWork) {
  Request request;
  request.set_text("the");
  request.set_max_tokens(400);
  request.set_ignore_end(true);
  {
    grpc::ClientContext context;
    const auto reader = stub_->Generate(&context, request);
    GenerateReply message;
    ASSERT_TRUE(reader->Read(&message));
    context.TryCancel();
    while (reader->Read(&message)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ExpectAllPagesFree();
  std::mutex gate;
  gate.lock();
  ASSERT_OK(engine_->Submit({.prompt = {1}, .max_tokens = 1},
                            [&gate](const GenerateEvent&) { const std::lock_guard lock(gate); }));
  EXPECT_EQ(Call(request, absl::Milliseconds(200)).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  gate.unlock();
  ExpectAllPagesFree();
  const absl::Time give_up = absl::Now() + absl::Seconds(5);
  while (server_->active() > 0 && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(server_->active(), 0);
}

// Clients ping while they wait through a long prefill, when no data flows. gRPC's default is to
// answer the third such ping within five minutes with GOAWAY "too_many_pings", and the call fails
// with UNAVAILABLE. gRPC's own client sends at most one a second, so this one speaks HTTP/2.
TEST_F(GrpcTest, AnyNumberOfPingsIsAnswered) {
  const auto frame = [](char type, const std::string& payload) {
    return std::string({0, 0, static_cast<char>(payload.size()), type, 0, 0, 0, 0, 0}) + payload;
  };
  constexpr char kSettings = 4, kPing = 6, kGoAway = 7;
  constexpr int kPings = 20;
  testing::RawClient client(server_->port());
  std::string hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, "");
  for (int i = 0; i < kPings - 1; ++i) hello += frame(kPing, "12345678");
  client.Send(hello);
  std::string got;
  int answered = 0;
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (answered < kPings && absl::Now() < give_up) {
    got += client.ReadFor(absl::Milliseconds(100));
    while (got.size() >= 9) {
      const size_t length = (got[0] & 0xFF) << 16 | (got[1] & 0xFF) << 8 | (got[2] & 0xFF);
      if (got.size() < 9 + length) break;
      ASSERT_NE(got[3], kGoAway) << "after " << answered << " pings: " << got.substr(9, length);
      // The last comes after all others were judged.
      if (got[3] == kPing && ++answered == kPings - 1) client.Send(frame(kPing, "12345678"));
      got.erase(0, 9 + length);
    }
  }
  EXPECT_EQ(answered, kPings);
}

TEST_F(GrpcTest, AUsedPortIsAnError) {
  EXPECT_THAT(GrpcServer::Start(*engine_, served_->tokenizer(), *metrics_,
                                {.port = server_->port(), .model_name = "tiny"}),
              ::plinth::testing::StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr(absl::StrCat(server_->port()))));
}

}  // namespace
}  // namespace plinth::infer
