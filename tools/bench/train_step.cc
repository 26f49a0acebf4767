// train_step: one training step of GPT-2 124M beside PyTorch's, and beside what the machine allows.
#include <unistd.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/config/model.pb.h"
#include "plinth/hardware/base/median.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/progress_line.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/cost/cost.h"
#include "plinth/models/zoo/resolve.h"
#include "plinth/tools/bench/gpt2_step.h"
#include "plinth/tools/bench/limits.h"
#include "plinth/tools/bench/peer_process.h"

ABSL_FLAG(int64_t, batch, 4, "sequences of a step");
ABSL_FLAG(std::vector<std::string>, tokens, (std::vector<std::string>{"64", "256"}),
          "tokens of a sequence, one run for each");
ABSL_FLAG(int, threads, 2, "threads of each side");
ABSL_FLAG(int, rounds, 7, "steps of each side, alternating, after one to warm up");
ABSL_FLAG(bool, peer, true, "time PyTorch as well, if python3-torch is installed");
ABSL_FLAG(std::string, python, "/usr/bin/python3", "interpreter that has PyTorch");
ABSL_FLAG(std::string, peer_script, "tools/bench/gpt2_step.py", "PyTorch's side");
ABSL_FLAG(std::string, blas, "/usr/lib/x86_64-linux-gnu/openblas-openmp",
          "put first on the peer's library path: without it PyTorch and OpenBLAS start two "
          "thread pools, which fight");
ABSL_FLAG(bool, tiny, false, "a small model instead: checks that the benchmark works");
ABSL_FLAG(bool, json, false, "print one JSON object (plinth.bench.train_step.v1)");

namespace plinth::tools {
namespace {

namespace json = boost::json;

constexpr uint64_t kTinyProbe = 8 << 20;

// Weights and gradients are read and weights written; both moments are read and written.
constexpr double kOptimizerBytesPerParameter = 7 * sizeof(float);
constexpr absl::Duration kPeerTimeout = absl::Minutes(5);

struct Result {
  int64_t tokens = 0;
  double ours_ms = 0;   // medians
  double peer_ms = 0;   // 0 = not timed
  double ratio = 0;     // peer / ours of a round
  double limit_ms = 0;  // FLOPs / multiply-add peak + bytes of the optimizer / read probe
  double of_limit = 0;  // limit / ours of a round
  double fma_gflops = 0;
  double read_gbps = 0;
  double first_loss = 0;
  double peer_first_loss = 0;
};

config::ModelConfig Model() {
  const bool tiny = absl::GetFlag(FLAGS_tiny);
  config::ModelConfig model;
  model.set_architecture(config::GPT2);
  model.set_vocab_size(tiny ? 300 : 50257);
  model.set_layers(tiny ? 2 : 12);
  model.set_model_dim(tiny ? 32 : 768);
  model.set_heads(tiny ? 2 : 12);
  model.set_max_positions(tiny ? 256 : 1024);
  return model;
}

// Null with a note when the peer is not wanted or not there.
absl::StatusOr<std::unique_ptr<PeerProcess>> StartPeer(int64_t tokens, std::string& name) {
  if (!absl::GetFlag(FLAGS_peer)) return nullptr;
  const config::ModelConfig model = Model();
  const int threads = absl::GetFlag(FLAGS_threads);
  std::vector<std::string> argv = {absl::GetFlag(FLAGS_python), absl::GetFlag(FLAGS_peer_script)};
  for (const int64_t argument :
       {absl::GetFlag(FLAGS_batch), tokens, int64_t{threads}, model.layers(), model.model_dim(),
        model.heads(), model.vocab_size(), model.max_positions()}) {
    argv.push_back(absl::StrCat(argument));
  }
  if (::access(argv[0].c_str(), X_OK) != 0 || ::access(argv[1].c_str(), R_OK) != 0) {
    std::fprintf(stderr, "note: PyTorch is not timed: no %s or no %s\n", argv[0].c_str(),
                 argv[1].c_str());
    return nullptr;
  }
  ASSIGN_OR_RETURN(auto peer,
                   PeerProcess::Start(argv, {"LD_LIBRARY_PATH=" + absl::GetFlag(FLAGS_blas),
                                             absl::StrCat("OMP_NUM_THREADS=", threads)}));
  ASSIGN_OR_RETURN(const std::string hello, peer->Ask("", kPeerTimeout));
  const std::pair<std::string, std::string> words = absl::StrSplit(hello, ' ');
  if (words.first != "ready") {
    std::fprintf(stderr, "note: PyTorch is not timed: install python3-torch\n");
    return nullptr;
  }
  name = words.second;
  return peer;
}

absl::StatusOr<StepTime> RunPeer(PeerProcess& peer) {
  ASSIGN_OR_RETURN(const std::string reply, peer.Ask("step", kPeerTimeout));
  const std::pair<std::string, std::string> words = absl::StrSplit(reply, ' ');
  StepTime time;
  if (!absl::SimpleAtod(words.first, &time.seconds) ||
      !absl::SimpleAtod(words.second, &time.loss)) {
    return absl::InternalError("the peer answered: " + reply);
  }
  // Its OpenMP threads spin for some milliseconds after a step; ours must not pay for that.
  absl::SleepFor(absl::Milliseconds(20));
  return time;
}

// Random weights predict nothing: a first loss far from that of a uniform guess, or from the
// peer's, means that one of them does not compute what is timed.
absl::Status CheckLoss(const char* whose, double loss, double uniform) {
  if (std::abs(loss - uniform) < 0.5) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("%s first loss is %.3f, expected %.3f within 0.5", whose, loss, uniform));
}

absl::StatusOr<Result> Measure(int64_t tokens, LimitProbe& probe, std::string& peer_name) {
  const config::ModelConfig config = Model();
  const int rounds = absl::GetFlag(FLAGS_rounds);
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  ASSIGN_OR_RETURN(const models::ModelSpec spec, models::ResolveModel(config));
  const double flops =
      models::TrainFlopsPerToken(spec, tokens) * static_cast<double>(batch * tokens);
  const double bytes =
      kOptimizerBytesPerParameter * static_cast<double>(models::CountParameters(spec).total());
  ASSIGN_OR_RETURN(const auto ours,
                   Gpt2Step::Create(config, batch, tokens, absl::GetFlag(FLAGS_threads)));
  ASSIGN_OR_RETURN(const auto peer, StartPeer(tokens, peer_name));

  Result result = {.tokens = tokens};
  const double uniform = std::log(static_cast<double>(spec.dims.vocab_size));
  ASSIGN_OR_RETURN(const StepTime first, ours->Run());
  RETURN_IF_ERROR(CheckLoss("Plinth's", result.first_loss = first.loss, uniform));
  if (peer != nullptr) {
    ASSIGN_OR_RETURN(const StepTime warm, RunPeer(*peer));
    RETURN_IF_ERROR(CheckLoss("PyTorch's", result.peer_first_loss = warm.loss, uniform));
  }
  ProgressLine progress;
  std::vector<double> ours_ms, peer_ms, ratios, limits, of_limits, peaks, reads;
  for (int round = 0; round < rounds; ++round) {
    progress.Show(absl::StrFormat("T=%d: round %d of %d", tokens, round + 1, rounds));
    ASSIGN_OR_RETURN(const double peak_before, probe.FmaGflops());
    ASSIGN_OR_RETURN(const double read_before, probe.ReadGbps());
    ASSIGN_OR_RETURN(const StepTime step, ours->Run());
    ASSIGN_OR_RETURN(const double read_after, probe.ReadGbps());
    ASSIGN_OR_RETURN(const double peak_after, probe.FmaGflops());
    peaks.push_back((peak_before + peak_after) / 2);
    reads.push_back((read_before + read_after) / 2);
    limits.push_back((flops / peaks.back() + bytes / reads.back()) * 1e-6);
    ours_ms.push_back(step.seconds * 1e3);
    of_limits.push_back(limits.back() / ours_ms.back());
    if (peer == nullptr) continue;
    ASSIGN_OR_RETURN(const StepTime theirs, RunPeer(*peer));
    peer_ms.push_back(theirs.seconds * 1e3);
    ratios.push_back(peer_ms.back() / ours_ms.back());
  }
  result.ours_ms = Median(ours_ms);
  result.limit_ms = Median(limits);
  result.of_limit = Median(of_limits);
  result.fma_gflops = Median(peaks);
  result.read_gbps = Median(reads);
  if (peer != nullptr) result.peer_ms = Median(peer_ms), result.ratio = Median(ratios);
  return result;
}

std::string ToTable(const std::vector<Result>& results, const std::string& peer, bool disturbed) {
  std::string text = absl::StrFormat(
      "GPT-2 %s, B=%d, %d threads, f32: forward, backward, AdamW; medians of %d\n\n"
      "%-6s %10s %10s %7s %10s %9s %11s %9s\n",
      absl::GetFlag(FLAGS_tiny) ? "tiny" : "124M", absl::GetFlag(FLAGS_batch),
      absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_rounds), "", "Plinth ms",
      peer.empty() ? "-" : "PyTorch ms", "ratio", "limit ms", "of limit", "FMA GFLOP/s",
      "read GB/s");
  for (const Result& r : results) {
    const std::string peer_ms = r.peer_ms > 0 ? absl::StrFormat("%.1f", r.peer_ms) : "-";
    const std::string ratio = r.peer_ms > 0 ? absl::StrFormat("%.2f", r.ratio) : "-";
    absl::StrAppendFormat(&text, "T=%-4d %10.1f %10s %7s %10.1f %7.0f %% %11.1f %9.1f\n", r.tokens,
                          r.ours_ms, peer_ms, ratio, r.limit_ms, 100 * r.of_limit, r.fma_gflops,
                          r.read_gbps);
  }
  absl::StrAppend(
      &text,
      "\nratio: PyTorch's time over ours, of steps next to each other.\nlimit: FLOPs at "
      "the multiply-add peak plus 28 bytes per parameter at the read probe,\nboth "
      "measured right before and after each step.\n");
  if (!peer.empty())
    absl::StrAppend(&text, "peer: ", peer, " of ", absl::GetFlag(FLAGS_python), "\n");
  if (disturbed) {
    absl::StrAppend(&text,
                    "Disturbed: other programs used these CPUs meanwhile. Repeat on a quiet "
                    "machine.\n");
  }
  return text;
}

std::string ToJson(const std::vector<Result>& results, const std::string& peer, bool disturbed) {
  json::array rows;
  for (const Result& r : results) {
    json::object row = {{"tokens", r.tokens},         {"plinth_ms", r.ours_ms},
                        {"limit_ms", r.limit_ms},     {"of_limit", r.of_limit},
                        {"fma_gflops", r.fma_gflops}, {"read_gbps", r.read_gbps},
                        {"first_loss", r.first_loss}};
    if (r.peer_ms > 0) {
      row["peer_ms"] = r.peer_ms;
      row["ratio"] = r.ratio;
      row["peer_first_loss"] = r.peer_first_loss;
    }
    rows.push_back(std::move(row));
  }
  json::object object = {{"schema", "plinth.bench.train_step.v1"},
                         {"model", absl::GetFlag(FLAGS_tiny) ? "gpt2_tiny" : "gpt2_124m"},
                         {"batch", absl::GetFlag(FLAGS_batch)},
                         {"threads", absl::GetFlag(FLAGS_threads)},
                         {"rounds", absl::GetFlag(FLAGS_rounds)},
                         {"disturbed", disturbed},
                         {"results", std::move(rows)}};
  if (!peer.empty()) object["peer"] = peer;
  return json::serialize(object) + "\n";
}

absl::StatusOr<std::string> Run() {
  if (absl::GetFlag(FLAGS_rounds) < 1 || absl::GetFlag(FLAGS_threads) < 1 ||
      absl::GetFlag(FLAGS_batch) < 1) {
    return absl::InvalidArgumentError("--rounds, --threads and --batch must be at least 1");
  }
  ASSIGN_OR_RETURN(
      LimitProbe probe,
      LimitProbe::Create(absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_tiny) ? kTinyProbe : 0));
  std::vector<Result> results;
  std::string peer;
  for (const std::string& text : absl::GetFlag(FLAGS_tokens)) {
    int64_t tokens = 0;
    const int64_t most = Model().max_positions();
    if (!absl::SimpleAtoi(text, &tokens) || tokens < 1 || tokens > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tokens: \"", text, "\", expected 1 to ", most));
    }
    ASSIGN_OR_RETURN(results.emplace_back(), Measure(tokens, probe, peer));
  }
  return absl::GetFlag(FLAGS_json) ? ToJson(results, peer, probe.disturbed())
                                   : ToTable(results, peer, probe.disturbed());
}

}  // namespace
}  // namespace plinth::tools

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "times one training step of GPT-2 124M (forward, backward, AdamW), alternating with "
      "PyTorch.\n\n"
      "  bazel run //tools/bench:train_step\n"
      "  bazel run //tools/bench:train_step -- --tokens=64 --rounds=15 --json\n\n"
      "Use a quiet machine with 6 GB of free memory. Without python3-torch our side runs alone.");
  plinth::ParseFlagsOnly("train_step", argc, argv);
  return plinth::PrintReport("train_step", plinth::tools::Run());
}
