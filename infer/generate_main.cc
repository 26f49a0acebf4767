// Continues a prompt with a trained model and streams the text to stdout.
#include <cstdint>
#include <cstdio>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "plinth/config/loader/command_line.h"
#include "plinth/config/loader/loader.h"
#include "plinth/config/run.pb.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/infer/infer.h"

ABSL_FLAG(std::string, checkpoint, "",
          "checkpoint or run directory (its latest checkpoint); overrides serve.checkpoint");
ABSL_FLAG(std::string, prompt, "", "text to continue; empty: the model starts a text");
ABSL_FLAG(int64_t, max_tokens, 128, "new tokens at most");
ABSL_FLAG(double, temperature, 0.8, "divides logits; 0 takes the most likely token");
ABSL_FLAG(int64_t, top_k, 0, "keep the k most likely tokens; 0: all");
ABSL_FLAG(double, top_p, 1, "keep the fewest tokens that sum to this probability");
ABSL_FLAG(double, min_p, 0, "drop tokens below this times the most likely");
ABSL_FLAG(uint64_t, seed, 1, "seed of the draws: equal seeds give equal text");

namespace plinth::infer {
namespace {

constexpr char kUsage[] =
    "Continues --prompt with a trained model; text goes to stdout.\n"
    "  generate --checkpoint=runs/tiny_cpu --prompt=\"The \"\n"
    "Also takes --config=FILE (a run config: serve and hardware are used) and repeated "
    "--set=PATH=VALUE.";

absl::StatusOr<config::RunConfig> ReadConfig(const config::ConfigFlags& flags) {
  absl::StatusOr<config::RunConfig> config =
      flags.config.empty() ? config::ParseRunConfig("", "--set", flags.settings)
                           : config::LoadRunConfig(flags.config, flags.settings);
  if (config.ok() && !absl::GetFlag(FLAGS_checkpoint).empty()) {
    config->mutable_serve()->set_checkpoint(absl::GetFlag(FLAGS_checkpoint));
  }
  return config;
}

absl::Status Generate(const config::ConfigFlags& flags) {
  ASSIGN_OR_RETURN(config::RunConfig config, ReadConfig(flags));
  config.mutable_serve()->set_max_batch(1);
  config.mutable_serve()->set_kv_tokens(0);  // as many as one sequence can have
  ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> served,
                   ServedModel::Load(config.serve().checkpoint(), config.hardware()));
  LOG(INFO) << served->checkpoint_dir() << ": step " << served->step();
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, served->NewEngine(config.serve()));
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, served->EncodePrompt(absl::GetFlag(FLAGS_prompt)),
                   _ << "--prompt");
  GenerateRequest request{.prompt = std::move(prompt),
                          .max_tokens = absl::GetFlag(FLAGS_max_tokens),
                          .sampling = {.temperature = absl::GetFlag(FLAGS_temperature),
                                       .top_k = absl::GetFlag(FLAGS_top_k),
                                       .top_p = absl::GetFlag(FLAGS_top_p),
                                       .min_p = absl::GetFlag(FLAGS_min_p),
                                       .seed = absl::GetFlag(FLAGS_seed)}};
  std::promise<absl::Status> ended;
  // The prompt is shown with the first news: a request that is refused prints nothing.
  std::string shown = absl::GetFlag(FLAGS_prompt);
  const auto id = engine->Submit(std::move(request), [&ended, &shown](const GenerateEvent& event) {
    std::cout << std::exchange(shown, "") << event.text << std::flush;
    if (event.finish != FinishReason::kNone) ended.set_value(event.error);
  });
  RETURN_IF_ERROR(id.status());
  const absl::Status status = ended.get_future().get();
  std::cout << std::endl;
  if (status.ok() && !std::cout) return absl::DataLossError("stdout: cannot be written");
  return status;
}

}  // namespace
}  // namespace plinth::infer

int main(int argc, char** argv) {
  plinth::SetProgramHelp(plinth::infer::kUsage);
  const auto flags = plinth::config::TakeConfigFlags(argc, argv);
  absl::Status status = flags.status();
  if (status.ok()) {
    plinth::ParseFlagsOnly("generate", argc, argv);
    status = plinth::infer::Generate(*flags);
  }
  if (status.ok()) return 0;
  return plinth::ReportError("generate", status);
}
