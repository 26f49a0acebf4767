// decode: how fast one reply is written, beside what memory allows.
//
// Decoding one sequence reads every weight once for each token, so the read probe is its limit.
#include <algorithm>
#include <boost/json.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/median.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/progress_line.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/threading/threads.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/engine/request.h"
#include "plinth/models/cost/cost.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/zoo/create.h"
#include "plinth/models/zoo/resolve.h"
#include "plinth/tools/bench/limits.h"

ABSL_FLAG(int, threads, 2, "threads of the engine and of the probe");
ABSL_FLAG(int, rounds, 7, "replies with each type of weights, alternating, after one to warm up");
ABSL_FLAG(int64_t, tokens, 64, "tokens of a reply that are timed");
ABSL_FLAG(bool, tiny, false, "a small model instead: checks that the benchmark works");
ABSL_FLAG(bool, json, false, "print one JSON object (plinth.bench.decode.v1)");

namespace plinth::tools {
namespace {

namespace json = boost::json;

constexpr uint64_t kTinyProbe = 8 << 20;

constexpr int64_t kPrompt = 16;
constexpr absl::Duration kReplyTimeout = absl::Minutes(5);

// The shape of config/presets/llama_shape.textproto: about 100 M parameters.
config::ModelConfig Model() {
  const bool tiny = absl::GetFlag(FLAGS_tiny);
  config::ModelConfig model;
  model.set_architecture(config::LLAMA);
  model.set_vocab_size(tiny ? 300 : 32000);
  model.set_layers(tiny ? 2 : 12);
  model.set_model_dim(tiny ? 64 : 768);
  model.set_heads(tiny ? 4 : 12);
  model.set_kv_heads(tiny ? 2 : 4);
  model.set_ffn_dim(tiny ? 96 : 2048);
  model.set_max_positions(2048);
  model.set_tie_embeddings(true);
  return model;
}

struct Reply {
  std::vector<int32_t> ids;
  double seconds_per_token = 0;  // from the first token to the last
};

// One greedy reply, alone in the engine.
absl::StatusOr<Reply> Generate(infer::Engine& engine, int64_t tokens) {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Reply reply;
    absl::Time first, last;
    bool done = false;
    absl::Status error;
  };
  // Shared, so that a reply that comes after the deadline finds it.
  const auto state = std::make_shared<State>();
  infer::GenerateRequest request = {.max_tokens = tokens + 1, .ignore_end = true};
  request.sampling.temperature = 0;
  for (int32_t i = 0; i < kPrompt; ++i) request.prompt.push_back(i);
  RETURN_IF_ERROR(engine
                      .Submit(std::move(request),
                              [state](const infer::GenerateEvent& event) {
                                const std::lock_guard lock(state->mutex);
                                if (event.token) {
                                  state->last = absl::Now();
                                  if (state->reply.ids.empty()) state->first = state->last;
                                  state->reply.ids.push_back(event.token->id);
                                }
                                state->error = event.error;
                                state->done = event.finish != infer::FinishReason::kNone;
                                if (state->done) state->changed.notify_one();
                              })
                      .status());
  std::unique_lock lock(state->mutex);
  const bool done = state->changed.wait_for(lock, absl::ToChronoSeconds(kReplyTimeout),
                                            [&state] { return state->done; });
  if (!done) return absl::DeadlineExceededError("the engine did not finish a reply in 5 minutes");
  RETURN_IF_ERROR(state->error);
  if (static_cast<int64_t>(state->reply.ids.size()) != tokens + 1) {
    return absl::InternalError(
        absl::StrCat("a reply of ", state->reply.ids.size(), " tokens, expected ", tokens + 1));
  }
  state->reply.seconds_per_token =
      absl::ToDoubleSeconds(state->last - state->first) / static_cast<double>(tokens);
  return state->reply;
}

struct Side {
  std::string weights;
  double bytes_per_token = 0;
  std::unique_ptr<infer::Engine> engine;
  std::vector<int32_t> reply;  // the first one
  std::vector<double> tokens_per_second, read_gbps, of_probe;
};

// Weights that a token multiplies with, and the keys and values of the tokens before it.
double BytesPerToken(const models::ModelSpec& spec, int64_t weight_bytes, int64_t tokens) {
  const models::ParameterCount count = models::CountParameters(spec);
  const int64_t weights = count.layers + spec.dims.vocab_size * spec.dims.model_dim;
  const double past = static_cast<double>(kPrompt) + static_cast<double>(tokens) / 2;
  return static_cast<double>(weights * weight_bytes) +
         past * static_cast<double>(models::KvBytesPerToken(spec, sizeof(float)));
}

absl::Status RunRound(Side& side, LimitProbe& probe) {
  ASSIGN_OR_RETURN(const double before, probe.ReadGbps());
  ASSIGN_OR_RETURN(const Reply reply, Generate(*side.engine, absl::GetFlag(FLAGS_tokens)));
  ASSIGN_OR_RETURN(const double after, probe.ReadGbps());
  if (reply.ids != side.reply) {
    return absl::InternalError(side.weights + ": the same prompt got two different replies");
  }
  side.read_gbps.push_back((before + after) / 2);
  side.tokens_per_second.push_back(1 / reply.seconds_per_token);
  side.of_probe.push_back(side.bytes_per_token / reply.seconds_per_token * 1e-9 /
                          side.read_gbps.back());
  return absl::OkStatus();
}

std::string ToTable(const std::vector<Side>& sides, int64_t parameters, bool disturbed) {
  std::string text = absl::StrFormat(
      "Llama shape of %.1f M parameters, one sequence, %d tokens, %d threads; medians of %d\n\n"
      "%-8s %10s %14s %9s %10s %9s\n",
      static_cast<double>(parameters) / 1e6, absl::GetFlag(FLAGS_tokens),
      absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_rounds), "weights", "tokens/s",
      "bytes/token", "GB/s", "read GB/s", "of probe");
  for (const Side& side : sides) {
    const double rate = Median(side.tokens_per_second);
    absl::StrAppendFormat(&text, "%-8s %10.1f %14.0f %9.1f %10.1f %7.0f %%\n", side.weights, rate,
                          side.bytes_per_token, rate * side.bytes_per_token * 1e-9,
                          Median(side.read_gbps), 100 * Median(side.of_probe));
  }
  text +=
      "\nof probe: bytes that a token reads, over its time, over the read bandwidth measured "
      "right\nbefore and after each reply.\n";
  if (disturbed) {
    text += "Disturbed: other programs used these CPUs meanwhile. Repeat on a quiet machine.\n";
  }
  return text;
}

std::string ToJson(const std::vector<Side>& sides, int64_t parameters, bool disturbed) {
  json::array rows;
  for (const Side& side : sides) {
    rows.push_back(json::object{{"weights", side.weights},
                                {"tokens_per_second", Median(side.tokens_per_second)},
                                {"bytes_per_token", side.bytes_per_token},
                                {"read_gbps", Median(side.read_gbps)},
                                {"of_probe", Median(side.of_probe)}});
  }
  return json::serialize(json::object{{"schema", "plinth.bench.decode.v1"},
                                      {"parameters", parameters},
                                      {"threads", absl::GetFlag(FLAGS_threads)},
                                      {"tokens", absl::GetFlag(FLAGS_tokens)},
                                      {"rounds", absl::GetFlag(FLAGS_rounds)},
                                      {"disturbed", disturbed},
                                      {"results", std::move(rows)}}) +
         "\n";
}

absl::StatusOr<std::string> Run() {
  const int64_t tokens = absl::GetFlag(FLAGS_tokens);
  const config::ModelConfig config = Model();
  const int64_t most = config.max_positions() - kPrompt - 1;
  if (tokens < 1 || tokens > most || absl::GetFlag(FLAGS_rounds) < 1 ||
      absl::GetFlag(FLAGS_threads) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokens must be 1 to ", most, ", --rounds and --threads at least 1"));
  }
  ASSIGN_OR_RETURN(
      LimitProbe probe,
      LimitProbe::Create(absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_tiny) ? kTinyProbe : 0));
  ASSIGN_OR_RETURN(const models::ModelSpec spec, models::ResolveModel(config));
  // Destroyed in reverse: engines, the model's tensors, then what they lie in.
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateDevice(DeviceKind::kCpu));
  const std::unique_ptr<Stream> stream = device->CreateStream();
  CachingAllocator allocator(device.get());
  Threads f32_team(absl::GetFlag(FLAGS_threads)), bf16_team(absl::GetFlag(FLAGS_threads));
  ASSIGN_OR_RETURN(const auto model, models::CreateModel(config));
  models::Initialize(*model, /*seed=*/1, allocator, *stream);
  std::vector<Side> sides;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const bool f32 = dtype == DType::kF32;
    Side& side = sides.emplace_back();
    side.weights = f32 ? "f32" : "bf16";
    side.bytes_per_token = BytesPerToken(spec, f32 ? 4 : 2, tokens);
    infer::EngineOptions options = {.max_batch = 1, .weights = dtype};
    ASSIGN_OR_RETURN(side.engine,
                     infer::Engine::Create(*model, *device, f32 ? f32_team : bf16_team, options));
    ASSIGN_OR_RETURN(const Reply warm, Generate(*side.engine, tokens));
    side.reply = warm.ids;
  }
  {
    ProgressLine progress;
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      progress.Show(absl::StrFormat("round %d of %d", round + 1, absl::GetFlag(FLAGS_rounds)));
      for (Side& side : sides) RETURN_IF_ERROR(RunRound(side, probe));
    }
  }
  const int64_t parameters = models::CountParameters(spec).total();
  return absl::GetFlag(FLAGS_json) ? ToJson(sides, parameters, probe.disturbed())
                                   : ToTable(sides, parameters, probe.disturbed());
}

}  // namespace
}  // namespace plinth::tools

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "times single-stream decoding of a 100 M Llama shape with f32 and bf16 weights.\n\n"
      "  bazel run //tools/bench:decode\n"
      "  bazel run //tools/bench:decode -- --rounds=15 --json\n\n"
      "Use a quiet machine with 3 GB of free memory.");
  plinth::ParseFlagsOnly("decode", argc, argv);
  return plinth::PrintReport("decode", plinth::tools::Run());
}
