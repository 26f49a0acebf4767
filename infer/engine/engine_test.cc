#include "plinth/infer/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/models/nn/eager_ops.h"
#include "plinth/models/testing/tiny_models.h"

namespace plinth::infer {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Token id as one letter; ids beyond the alphabet as "?".
class LetterDecoder : public TextDecoder {
 public:
  std::string Push(int32_t id) override {
    return std::string(1, id < 26 ? static_cast<char>('a' + id) : '?');
  }
  std::string Flush() override { return ""; }
};

std::string Letters(const std::vector<int32_t>& ids) {
  std::string text;
  LetterDecoder decoder;
  for (const int32_t id : ids) text += decoder.Push(id);
  return text;
}

struct Reply {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;
  std::vector<TokenEvent> prompt;
  std::string text;
  FinishReason finish = FinishReason::kNone;
};

// Collects the events of many requests and waits for their ends.
class Inbox {
 public:
  explicit Inbox(size_t requests) : replies_(requests) {}

  GenerateCallback Slot(size_t i) {
    return [this, i](const GenerateEvent& event) {
      const std::lock_guard lock(mutex_);
      Reply& reply = replies_[i];
      EXPECT_EQ(reply.finish, FinishReason::kNone) << "an event after the last";
      for (const TokenEvent& token : event.prompt) reply.prompt.push_back(token);
      if (event.token.has_value()) {
        reply.ids.push_back(event.token->id);
        if (event.token->logprobs) {
          reply.logprobs.push_back(event.token->logprobs->chosen.logprob);
        }
      }
      reply.text += event.text;
      reply.finish = event.finish;
      ++events_;
      changed_.notify_all();
    };
  }
  bool WaitForEvents(int64_t count) {
    return Wait([&] { return events_ >= count; });
  }
  bool WaitForAll() {
    return Wait([&] {
      return std::ranges::all_of(replies_,
                                 [](const Reply& r) { return r.finish != FinishReason::kNone; });
    });
  }
  // After WaitForAll.
  const std::vector<Reply>& replies() const { return replies_; }

 private:
  template <typename Done>
  bool Wait(Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), done);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Reply> replies_;
  int64_t events_ = 0;
};

class EngineTest : public ::plinth::testing::DeviceTest {
 protected:
  EngineTest() : model_(models::testing::TinyModel(config::LLAMA, 3, allocator(), stream())) {}

  std::unique_ptr<Engine> NewEngine(EngineOptions options) {
    options.text_decoder = [] { return std::make_unique<LetterDecoder>(); };
    auto engine = Engine::Create(*model_, device(), threads(), std::move(options));
    CHECK_OK(engine);
    return *std::move(engine);
  }

  GenerateRequest Request(int64_t prompt, int64_t max_tokens, uint64_t seed) const {
    return {.prompt = models::testing::RandomIds(prompt, vocab(), seed),
            .max_tokens = max_tokens,
            .sampling = {.temperature = 1.2, .top_p = 0.95, .seed = seed},
            .top_logprobs = 2};
  }

  // What the engine must produce, from whole forward passes without any cache.
  Reply Expected(const GenerateRequest& request, int64_t limit) {
    models::EagerOps ops(ctx());
    Reply reply;
    std::vector<int32_t> ids = request.prompt;
    while (static_cast<int64_t>(reply.ids.size()) < request.max_tokens &&
           static_cast<int64_t>(ids.size()) < limit) {
      const std::vector<float> logits = LastLogits(ops, ids);
      const int32_t id = SampleToken(logits, request.sampling, static_cast<int64_t>(ids.size()));
      ids.push_back(id);
      reply.ids.push_back(id);
      reply.logprobs.push_back(ComputeLogprobs(logits, id, 0).chosen.logprob);
    }
    reply.text = Letters(reply.ids);
    return reply;
  }

  std::vector<float> LastLogits(models::EagerOps& ops, const std::vector<int32_t>& ids) {
    std::vector<int32_t> positions;
    for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int32_t>(i));
    const std::vector<int32_t> starts = {0, static_cast<int32_t>(ids.size())};
    const std::vector<int32_t> last = {positions.back()};
    return Download<float>(model_->Logits(ops, {.ids = ids,
                                                .positions = positions,
                                                .seq_starts = starts,
                                                .output_rows = last,
                                                .all_rows = false}));
  }

  int64_t vocab() const { return model_->dims().vocab_size; }

  std::unique_ptr<models::LanguageModel> model_;
};

// Odd pages, chunked prompts, and a cache too small for the batch, so that sequences are
// preempted and computed again: every bit of every reply stays the same.
TEST_P(EngineTest, RepliesDoNotDependOnBatchChunksPagesOrPreemption) {
  std::vector<GenerateRequest> requests;
  std::vector<Reply> expected;
  for (uint64_t i = 0; i < 14; ++i) {
    requests.push_back(Request(1 + static_cast<int64_t>(i * 5 % 23), 5 + 3 * (i % 6), i));
    expected.push_back(Expected(requests.back(), model_->dims().max_positions));
  }
  const std::vector<EngineOptions> settings = {
      {.max_batch = 1, .page_tokens = 16},
      {.max_batch = 6, .page_tokens = 3, .step_tokens = 7},
      {.max_batch = 8, .kv_tokens = 60, .page_tokens = 1, .step_tokens = 64},
      {.max_batch = 5, .kv_tokens = 45, .page_tokens = 5, .step_tokens = 9},
  };
  int64_t preemptions = 0;
  for (const EngineOptions& options : settings) {
    const std::unique_ptr<Engine> engine = NewEngine(options);
    Inbox inbox(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_OK(engine->Submit(requests[i], inbox.Slot(i)));
    }
    ASSERT_TRUE(inbox.WaitForAll());
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(inbox.replies()[i].ids, expected[i].ids);
      EXPECT_EQ(inbox.replies()[i].logprobs, expected[i].logprobs);
      EXPECT_EQ(inbox.replies()[i].text, expected[i].text);
      EXPECT_EQ(inbox.replies()[i].finish, FinishReason::kLength);
    }
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.free_pages, stats.total_pages);
    EXPECT_EQ(stats.finished, 14);
    preemptions += stats.preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST_P(EngineTest, CancellingAtRandomStepsReturnsEveryPage) {
  const std::unique_ptr<Engine> engine =
      NewEngine({.max_batch = 7, .max_queue = 200, .kv_tokens = 150, .page_tokens = 4});
  constexpr size_t kRequests = 200;
  Inbox inbox(kRequests);
  int64_t events = 0;
  std::vector<RequestId> ids;
  for (size_t i = 0; i < kRequests; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const RequestId id,
        engine->Submit(Request(1 + static_cast<int64_t>(i % 31), 40, i), inbox.Slot(i)));
    ids.push_back(id);
  }
  for (size_t i = 0; i < kRequests; ++i) {
    events += static_cast<int64_t>(RandomBits(8, 0, i) % 5);
    ASSERT_TRUE(inbox.WaitForEvents(events));
    engine->Cancel(ids[RandomBits(8, 1, i) % kRequests]);
    if (i % 3 == 0) engine->Cancel(ids[i]);
  }
  for (const RequestId id : ids) engine->Cancel(id);
  ASSERT_TRUE(inbox.WaitForAll());
  int64_t cancelled = 0;
  for (const Reply& reply : inbox.replies()) {
    cancelled += reply.finish == FinishReason::kCancelled ? 1 : 0;
  }
  EXPECT_GT(cancelled, 100);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.free_pages, stats.total_pages);
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_EQ(stats.finished, static_cast<int64_t>(kRequests));
}

TEST_P(EngineTest, StopTextsEndTheReplyBeforeThem) {
  const std::unique_ptr<Engine> engine = NewEngine({});
  const GenerateRequest request = Request(4, 30, 12);
  const std::string whole = Expected(request, 96).text;
  // Stops that occur, one that would only start, one that never occurs.
  for (const std::string& stop :
       {whole.substr(10, 3), whole.substr(0, 1), whole.substr(27) + "@", std::string("@")}) {
    GenerateRequest stopping = request;
    stopping.stop = {"#", stop};
    Inbox inbox(1);
    ASSERT_OK(engine->Submit(stopping, inbox.Slot(0)));
    ASSERT_TRUE(inbox.WaitForAll());
    const size_t at = whole.find(stop);
    EXPECT_EQ(inbox.replies()[0].text, whole.substr(0, at));
    EXPECT_EQ(inbox.replies()[0].finish,
              at == std::string::npos ? FinishReason::kLength : FinishReason::kStop);
    EXPECT_EQ(inbox.replies()[0].logprobs.size(), inbox.replies()[0].ids.size());
  }
}

TEST_P(EngineTest, EndTokensStopUnlessIgnored) {
  const GenerateRequest request = Request(6, 20, 5);
  const Reply whole = Expected(request, 96);
  const int32_t end = whole.ids[7];
  const size_t first = static_cast<size_t>(std::ranges::find(whole.ids, end) - whole.ids.begin());
  const std::unique_ptr<Engine> engine = NewEngine({.end_ids = {end}});
  GenerateRequest ignoring = request;
  ignoring.ignore_end = true;
  Inbox inbox(2);
  ASSERT_OK(engine->Submit(request, inbox.Slot(0)));
  ASSERT_OK(engine->Submit(ignoring, inbox.Slot(1)));
  ASSERT_TRUE(inbox.WaitForAll());
  EXPECT_EQ(inbox.replies()[0].ids,
            std::vector<int32_t>(whole.ids.begin(), whole.ids.begin() + first));
  EXPECT_EQ(inbox.replies()[0].finish, FinishReason::kStop);
  EXPECT_EQ(inbox.replies()[1].ids, whole.ids);
}

TEST_P(EngineTest, PromptLogprobsEqualAForwardPassOverThePrompt) {
  const std::unique_ptr<Engine> engine =
      NewEngine({.max_batch = 3, .kv_tokens = 60, .page_tokens = 3, .step_tokens = 4});
  Inbox inbox(3);
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 3; ++i) {
    requests.push_back(Request(11 + static_cast<int64_t>(i), i == 0 ? 0 : 25, i));
    requests.back().prompt_logprobs = true;
    ASSERT_OK(engine->Submit(requests.back(), inbox.Slot(i)));
  }
  ASSERT_TRUE(inbox.WaitForAll());
  models::EagerOps ops(ctx());
  for (size_t r = 0; r < requests.size(); ++r) {
    const std::vector<int32_t>& prompt = requests[r].prompt;
    const Reply& reply = inbox.replies()[r];
    ASSERT_EQ(reply.prompt.size(), prompt.size());
    EXPECT_FALSE(reply.prompt[0].logprobs.has_value());
    for (size_t i = 0; i < prompt.size(); ++i) {
      EXPECT_EQ(reply.prompt[i].id, prompt[i]);
      if (i == 0) continue;
      const std::vector<float> logits =
          LastLogits(ops, {prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(i)});
      const Logprobs expected = ComputeLogprobs(logits, prompt[i], 2);
      EXPECT_EQ(reply.prompt[i].logprobs->chosen.logprob, expected.chosen.logprob);
      EXPECT_EQ(reply.prompt[i].logprobs->top.at(1).id, expected.top[1].id);
    }
    EXPECT_EQ(static_cast<int64_t>(reply.ids.size()), requests[r].max_tokens);
  }
}

TEST_P(EngineTest, ReplyEndsWhereTheContextEnds) {
  const std::unique_ptr<Engine> engine = NewEngine({.kv_tokens = 20, .page_tokens = 4});
  ASSERT_EQ(engine->max_tokens(), 20);
  const GenerateRequest request = Request(15, 1000, 2);
  Inbox inbox(1);
  ASSERT_OK(engine->Submit(request, inbox.Slot(0)));
  ASSERT_TRUE(inbox.WaitForAll());
  EXPECT_EQ(inbox.replies()[0].ids, Expected(request, 20).ids);
  EXPECT_EQ(inbox.replies()[0].ids.size(), 5u);
  EXPECT_EQ(inbox.replies()[0].finish, FinishReason::kLength);
}

TEST_P(EngineTest, BadRequestsAreRefusedWithTheNumbers) {
  const std::unique_ptr<Engine> engine = NewEngine({});
  const auto refused = [&](GenerateRequest request, const std::string& message) {
    const auto unreachable = [](const GenerateEvent&) { ADD_FAILURE(); };
    EXPECT_THAT(engine->Submit(std::move(request), unreachable),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused(Request(0, 5, 0), "prompt is empty");
  refused(Request(96, 5, 0), "the prompt has 96 tokens, at most 95 fit");
  refused(Request(97, 0, 0), "the prompt has 97 tokens, at most 96 fit");
  refused({.prompt = {1, 37}}, "prompt token 1 must be in [0, 37), got 37");
  refused({.prompt = {-1}}, "prompt token 0 must be in [0, 37), got -1");
  refused({.prompt = {1}, .max_tokens = -1}, "max_tokens must be >= 0, got -1");
  refused({.prompt = {1}, .sampling = {.top_p = 2}}, "top_p must be in (0, 1], got 2");
  refused({.prompt = {1}, .stop = {"a", ""}}, "a stop text is empty");
  refused({.prompt = {1}, .stop = std::vector<std::string>(17, "x")}, "got 17");
  refused({.prompt = {1}, .prompt_logprobs = true}, "prompt_logprobs needs top_logprobs");
  EXPECT_THAT(Engine::Create(*model_, device(), threads(), {.max_batch = 0, .page_tokens = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("max_batch"), HasSubstr("page_tokens"))));
}

// One request runs and is held inside its callback; one may wait; the third is refused.
// Meanwhile the figures answer and show how long the step has been going on.
TEST_P(EngineTest, AFullQueueRefusesAndABlockedStepShows) {
  const std::unique_ptr<Engine> engine = NewEngine({.max_batch = 1, .max_queue = 1});
  std::mutex gate;
  gate.lock();
  Inbox inbox(2);
  const GenerateCallback deliver = inbox.Slot(0);
  ASSERT_OK(engine->Submit(Request(3, 4, 1), [&](const GenerateEvent& event) {
    deliver(event);
    const std::lock_guard wait(gate);
  }));
  ASSERT_TRUE(inbox.WaitForEvents(1));
  ASSERT_OK(engine->Submit(Request(3, 4, 2), inbox.Slot(1)));
  EXPECT_THAT(engine->Submit(Request(3, 4, 3), inbox.Slot(0)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 wait")));
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.running, 1);
  EXPECT_EQ(stats.waiting, 1);
  EXPECT_EQ(stats.rejected, 1);
  const double before = stats.step_seconds;
  while (engine->stats().step_seconds <= before) {
  }
  gate.unlock();
  ASSERT_TRUE(inbox.WaitForAll());
  EXPECT_EQ(inbox.replies()[1].ids.size(), 4u);
}

TEST_P(EngineTest, DestructionEndsEveryRequest) {
  Inbox inbox(9);
  {
    const std::unique_ptr<Engine> engine = NewEngine({.max_batch = 2});
    for (uint64_t i = 0; i < 9; ++i) {
      ASSERT_OK(engine->Submit(Request(5, 90, i), inbox.Slot(i)));
    }
    ASSERT_TRUE(inbox.WaitForEvents(3));
  }
  ASSERT_TRUE(inbox.WaitForAll());
  EXPECT_EQ(inbox.replies().back().finish, FinishReason::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Devices, EngineTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::infer
