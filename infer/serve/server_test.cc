#include "plinth/infer/serve/server.h"

#include <boost/json.hpp>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/infer/load/served_model.h"
#include "plinth/infer/sampling/sampling.h"
#include "plinth/infer/serve/testing/raw_client.h"
#include "plinth/infer/serve/testing/served_tiny.h"
#include "plinth/models/nn/eager_ops.h"

namespace plinth::infer {
namespace {

namespace json = boost::json;
using testing::Fetch;
using ::testing::HasSubstr;
using testing::HttpReply;
using ::testing::Not;
using testing::RawClient;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { Restart({}); }

  // A new engine and a new server.
  void Restart(const config::ServeConfig& serve, InferServerOptions options = {}) {
    server_.reset();
    auto engine = served_->NewEngine(serve);
    CHECK_OK(engine);
    engine_ = *std::move(engine);
    options.model_name = "tiny";
    options.metrics_run = run_;
    auto server = InferServer::Start(*engine_, served_->tokenizer(), options);
    CHECK_OK(server);
    server_ = *std::move(server);
  }

  HttpReply Post(const std::string& target, const std::string& body) {
    return Fetch(server_->http_port(), "POST", target, body);
  }
  HttpReply Get(const std::string& target) { return Fetch(server_->http_port(), "GET", target); }

  // The data of each event of a stream; checks every byte between them.
  std::vector<std::string> Events(const std::string& body) {
    std::vector<std::string> events = absl::StrSplit(body, "\n\n");
    EXPECT_EQ(events.back(), "");
    events.pop_back();
    for (std::string& event : events) {
      EXPECT_THAT(event, StartsWith("data: "));
      event = event.substr(6);
      EXPECT_EQ(event.find('\n'), std::string::npos);
    }
    EXPECT_EQ(events.back(), "[DONE]");
    events.pop_back();
    return events;
  }

  // The log-probabilities that follow each prefix of `ids`, from whole forward passes.
  Logprobs Expected(const std::vector<int32_t>& ids, int64_t top) {
    const auto device = *CreateDevice(DeviceKind::kCpu);
    CachingAllocator allocator(device.get());
    const auto stream = device->CreateStream();
    Threads threads(1);
    models::EagerOps ops({.stream = stream.get(), .threads = &threads, .scratch = &allocator});
    const size_t n = ids.size() - 1;
    std::vector<int32_t> positions(n);
    for (size_t i = 0; i < n; ++i) positions[i] = static_cast<int32_t>(i);
    const std::vector<int32_t> starts = {0, static_cast<int32_t>(n)};
    const std::vector<int32_t> last = {static_cast<int32_t>(n) - 1};
    const Tensor logits = served_->model().Logits(ops, {.ids = std::span(ids).first(n),
                                                        .positions = positions,
                                                        .seq_starts = starts,
                                                        .output_rows = last,
                                                        .all_rows = false});
    std::vector<float> row(static_cast<size_t>(logits.elements()));
    stream->CopyOut(row.data(), logits.view().data, logits.view().bytes());
    CHECK_OK(stream->Synchronize());
    return ComputeLogprobs(row, ids.back(), top);
  }

  void ExpectAllPagesFree() {
    const absl::Time give_up = absl::Now() + absl::Seconds(10);
    EngineStats stats = engine_->stats();
    while ((stats.running + stats.waiting > 0) && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(10));
      stats = engine_->stats();
    }
    EXPECT_EQ(stats.running + stats.waiting, 0);
    EXPECT_EQ(stats.free_pages, stats.total_pages);
    EXPECT_EQ(stats.finished, stats.requests);
  }

  const std::string run_ = ::testing::TempDir() + "/server_run";
  const std::unique_ptr<ServedModel> served_ = testing::ServedTiny(run_);
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<InferServer> server_;
};

TEST_F(ServerTest, LogprobsEqualTheModelsOwnToTheBit) {
  const HttpReply reply = Post("/v1/completions", R"({"prompt": "the mason", "max_tokens": 12,
      "echo": true, "logprobs": 2, "seed": 3, "ignore_eos": true})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value whole = json::parse(reply.body);
  const json::value& logprobs = whole.at("choices").at(0).at("logprobs");
  const std::vector<int32_t> prompt = *served_->EncodePrompt("the mason");
  const size_t count = prompt.size() + 12;
  ASSERT_EQ(logprobs.at("token_logprobs").as_array().size(), count);
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());

  // Which ids these are, the engine tells.
  std::vector<int32_t> ids = prompt;
  std::mutex mutex;
  std::condition_variable done;
  bool ended = false;
  ASSERT_OK(engine_->Submit(
      {.prompt = prompt, .max_tokens = 12, .sampling = {.seed = 3}, .ignore_end = true},
      [&](const GenerateEvent& event) {
        const std::lock_guard lock(mutex);
        if (event.token) ids.push_back(event.token->id);
        ended = event.finish != FinishReason::kNone;
        if (ended) done.notify_one();
      }));
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(done.wait_for(lock, std::chrono::seconds(10), [&] { return ended; }));
  }
  ASSERT_EQ(ids.size(), count);
  for (size_t i = 1; i < count; ++i) {
    const Logprobs expected =
        Expected({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i) + 1}, 2);
    EXPECT_EQ(logprobs.at("token_logprobs").at(i).as_double(), expected.chosen.logprob) << i;
    const json::object& top = logprobs.at("top_logprobs").at(i).as_object();
    EXPECT_EQ(top.begin()->value().as_double(), expected.top[0].logprob);
  }
}

TEST_F(ServerTest, StreamsJoinToTheWholeReply) {
  const std::vector<std::string> variants = {
      R"("prompt": "the ", "max_tokens": 40, "seed": 1)",
      R"("prompt": "the ", "max_tokens": 40, "seed": 2, "logprobs": 1, "echo": true)",
      R"("prompt": [104, 105], "max_tokens": 60, "seed": 3, "stop": ["e", "in"], "logprobs": 0)",
      R"("prompt": "", "max_tokens": 1, "temperature": 0)",
      R"("prompt": "a", "max_tokens": 0, "echo": true)",
  };
  for (const std::string& fields : variants) {
    SCOPED_TRACE(fields);
    const HttpReply whole = Post("/v1/completions", "{" + fields + "}");
    ASSERT_EQ(whole.status, 200) << whole.body;
    const HttpReply stream = Post("/v1/completions", "{" + fields + R"(, "stream": true})");
    EXPECT_THAT(stream.head, HasSubstr("Content-Type: text/event-stream"));
    std::string text, finish;
    size_t tokens = 0;
    for (const std::string& event : Events(stream.body)) {
      EXPECT_THAT(event, Not(HasSubstr("usage")));
      const json::value choice = json::parse(event).at("choices").at(0);
      text += std::string(choice.at("text").as_string());
      EXPECT_EQ(finish, "") << "a chunk after the last";
      if (!choice.at("finish_reason").is_null()) {
        finish = std::string(choice.at("finish_reason").as_string());
      }
      if (!choice.at("logprobs").is_null()) {
        tokens += choice.at("logprobs").at("tokens").as_array().size();
      }
    }
    const json::value choice = json::parse(whole.body).at("choices").at(0);
    EXPECT_EQ(text, choice.at("text").as_string());
    EXPECT_EQ(finish, choice.at("finish_reason").as_string());
    if (!choice.at("logprobs").is_null()) {
      EXPECT_EQ(tokens, choice.at("logprobs").at("tokens").as_array().size());
    }
  }
}

TEST_F(ServerTest, ChatStreamsARoleThenTextThenUsage) {
  const std::string fields = R"({"model": "tiny", "max_tokens": 9, "seed": 4,
      "messages": [{"role": "user", "content": "who sets the stone?"}])";
  const json::value whole = json::parse(Post("/v1/chat/completions", fields + "}").body);
  const std::vector<std::string> events =
      Events(Post("/v1/chat/completions",
                  fields + R"(, "stream": true, "stream_options": {"include_usage": true}})")
                 .body);
  ASSERT_GE(events.size(), 3u);
  EXPECT_THAT(events.front(), HasSubstr(R"("delta":{"role":"assistant","content":""})"));
  std::string text;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value event = json::parse(events[i]);
    EXPECT_TRUE(event.at("usage").is_null());
    text += std::string(event.at("choices").at(0).at("delta").at("content").as_string());
  }
  EXPECT_EQ(text, whole.at("choices").at(0).at("message").at("content").as_string());
  const json::value last = json::parse(events.back());
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(last.at("usage"), whole.at("usage"));
}

TEST_F(ServerTest, RefusalsComeBeforeHeadersInTheEnvelope) {
  const auto refused = [this](const std::string& body, int status, const char* part) {
    const HttpReply reply = Post("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(part));
    const json::value error = json::parse(reply.body).at("error");
    EXPECT_TRUE(error.at("message").is_string() && error.at("type").is_string());
    EXPECT_TRUE(error.at("code").is_null() || error.at("code").is_string());
  };
  const std::string longest(600, '7');
  refused(R"({"stream": true, "messages": [{"role": "user", "content": ")" + longest + "\"}]}", 400,
          "at most 511 fit");
  refused(R"({"stream": true, "messages": {"role": "user", "content": "x"}})", 400,
          R"("param":"messages")");
  refused(R"({"model": "other", "stream": true, "messages": [{"role": "user", "content": "x"}]})",
          404, R"("code":"model_not_found")");
  EXPECT_EQ(Get("/v1/chat/completions").status, 405);
  EXPECT_EQ(Get("/v1/nothing").status, 404);
  EXPECT_EQ(Get("/page/../main.cc").status, 404);
  EXPECT_EQ(Get("/v1/models/tiny").status, 200);
  EXPECT_EQ(Get("/v1/models/t%69ny").status, 200);
  EXPECT_EQ(Get("/v1/models/other").status, 404);
  EXPECT_EQ(json::parse(Get("/v1/models").body).at("data").at(0).at("id").as_string(), "tiny");
}

// One request is held inside its callback on the engine's thread: the queue fills, and the
// server goes on to answer everything else.
TEST_F(ServerTest, ABlockedEngineShowsAndAFullQueueIs429) {
  config::ServeConfig serve;
  serve.set_max_batch(1);
  serve.set_max_queue(1);
  Restart(serve, {.stuck_after = absl::Milliseconds(50)});
  EXPECT_EQ(Get("/healthz").status, 200);
  std::mutex gate;
  gate.lock();
  const auto wait = [&gate](const GenerateEvent&) { const std::lock_guard lock(gate); };
  ASSERT_OK(engine_->Submit({.prompt = {1}, .max_tokens = 2, .ignore_end = true}, wait));
  ASSERT_OK(engine_->Submit({.prompt = {1}, .max_tokens = 1}, wait));
  absl::SleepFor(absl::Milliseconds(120));
  const HttpReply reply = Post("/v1/completions", R"({"prompt": "x", "stream": true})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_THAT(reply.head, HasSubstr("Retry-After: 1"));
  EXPECT_EQ(Get("/healthz").status, 503);
  EXPECT_THAT(Get("/healthz").body, HasSubstr("step has been running"));
  EXPECT_THAT(Get("/metrics").body, HasSubstr("plinth_requests_rejected_total"));
  gate.unlock();
  ExpectAllPagesFree();
  const absl::Time give_up = absl::Now() + absl::Seconds(5);
  while (Get("/healthz").status != 200 && absl::Now() < give_up) {
  }
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(ServerTest, ClientsThatLeaveAtRandomMomentsFreeTheirPages) {
  config::ServeConfig serve;
  serve.set_max_batch(8);
  serve.set_kv_tokens(1200);
  serve.set_max_queue(400);
  Restart(serve);
  constexpr int kThreads = 4;
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([this, t] {
      for (uint64_t i = 0; i < 200 / kThreads; ++i) {
        const uint64_t draw = RandomBits(9, static_cast<uint64_t>(t), i);
        RawClient client(server_->http_port());
        client.SendRequest("POST", "/v1/completions",
                           absl::StrCat(R"({"prompt": "the old town", "max_tokens": 400, )",
                                        R"("ignore_eos": true, "stream": )",
                                        draw % 3 == 0 ? "false" : "true", "}"));
        if (draw % 3 != 0 && draw % 5 != 0) client.ReadUntil("data: ");
        absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(draw / 16 % 12)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  ExpectAllPagesFree();
  EXPECT_LT(engine_->stats().generated_tokens, 200 * 400);
  EXPECT_GT(engine_->stats().requests, 100);
}

TEST_F(ServerTest, MetricsHaveTheNamesThatThePageReads) {
  ASSERT_EQ(
      Post("/v1/completions", R"({"prompt": "x", "max_tokens": 5, "ignore_eos": true})").status,
      200);
  const HttpReply reply = Get("/metrics");
  EXPECT_THAT(reply.head, HasSubstr("text/plain; version=0.0.4"));
  for (const char* sample :
       {"\nplinth_generated_tokens_total 5\n", "\nplinth_requests_running 0\n",
        "\nplinth_requests_waiting 0\n", "\nplinth_kv_pages_used 0\n", "\nplinth_kv_pages_total ",
        "plinth_http_requests_total{route=\"/v1/completions\",status=\"200\"} 1\n",
        "plinth_replies_total{reason=\"length\"} 1\n",
        "plinth_time_to_first_token_seconds_count 1\n",
        "plinth_time_per_token_seconds_count 4\n"}) {
    EXPECT_THAT(reply.body, HasSubstr(sample));
  }
}

TEST_F(ServerTest, ServesThePageAndTheTrainingLog) {
  const HttpReply page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  for (const char* name : {"app.js", "chart.js", "talk.js", "style.css"}) {
    EXPECT_THAT(page.body + Get("/page/app.js").body, HasSubstr(absl::StrCat("/page/", name)));
    EXPECT_EQ(Get(absl::StrCat("/page/", name)).status, 200) << name;
  }
  EXPECT_EQ(Get("/training/metrics").status, 404);
  std::ofstream(run_ + "/metrics.jsonl") << "{\"step\":1}\n{\"step\":2}\n{";
  const HttpReply lines = Get("/training/metrics?offset=11");
  EXPECT_EQ(lines.body, "{\"step\":2}\n");
  EXPECT_THAT(lines.head, HasSubstr("X-Next-Offset: 22"));
  EXPECT_EQ(Get("/training/metrics?offset=x").status, 400);
}

TEST_F(ServerTest, DrainingFinishesRunningRepliesAndRefusesNewOnes) {
  RawClient running(server_->http_port());
  running.SendRequest(
      "POST", "/v1/completions",
      R"({"prompt": "the", "max_tokens": 300, "ignore_eos": true, "stream": true})");
  running.ReadUntil("data: ");
  bool drained = false;
  std::thread drain([&] { drained = server_->Drain(absl::Seconds(20)); });
  const absl::Time give_up = absl::Now() + absl::Seconds(5);
  while (Get("/healthz").status == 200 && absl::Now() < give_up) {
  }
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": "x"})").status, 503);
  EXPECT_THAT(running.ReadAll(), HasSubstr("[DONE]"));
  drain.join();
  EXPECT_TRUE(drained);
}

TEST_F(ServerTest, AnEngineThatEndsIsAnErrorInTheStream) {
  RawClient running(server_->http_port());
  running.SendRequest(
      "POST", "/v1/completions",
      R"({"prompt": "the", "max_tokens": 400, "ignore_eos": true, "stream": true})");
  running.ReadUntil("data: ");
  EXPECT_FALSE(server_->Drain(absl::ZeroDuration()));
  server_.reset();  // the connection ends; the request is cancelled
  EXPECT_THAT(running.ReadAll(), Not(HasSubstr("[DONE]")));
  ExpectAllPagesFree();
}

}  // namespace
}  // namespace plinth::infer
