// serve: answers requests to a trained model over HTTP and gRPC, with a web page.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plinth/config/loader/command_line.h"
#include "plinth/config/loader/loader.h"
#include "plinth/config/run.pb.h"
#include "plinth/hardware/base/log.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/stop_signal.h"
#include "plinth/infer/engine/engine.h"
#include "plinth/infer/load/served_model.h"
#include "plinth/infer/serve/server.h"

ABSL_FLAG(std::string, checkpoint, "",
          "checkpoint or run directory (its latest checkpoint); overrides serve.checkpoint");

namespace plinth::infer {
namespace {

constexpr char kUsage[] =
    "serves a trained model: OpenAI's API over HTTP, gRPC, and a web page.\n\n"
    "  serve --checkpoint=runs/tiny_cpu\n"
    "  serve --config=FILE.textproto [--set serve.http_port=8080 ...]\n\n"
    "Prints the address on stdout once it answers. SIGTERM and Ctrl-C let running replies\n"
    "finish and exit with 0; a second one ends at once. Exit code 1: an error, in one line.";

constexpr absl::Duration kDrainPatience = absl::Seconds(30);

absl::StatusOr<config::RunConfig> ReadConfig(const config::ConfigFlags& flags) {
  ASSIGN_OR_RETURN(config::RunConfig config,
                   flags.config.empty() ? config::ParseRunConfig("", "--set", flags.settings)
                                        : config::LoadRunConfig(flags.config, flags.settings));
  if (!absl::GetFlag(FLAGS_checkpoint).empty()) {
    config.mutable_serve()->set_checkpoint(absl::GetFlag(FLAGS_checkpoint));
  }
  RETURN_IF_ERROR(config::CheckValid(config, config::Purpose::kServe));
  return config;
}

InferServerOptions OptionsFor(const config::ServeConfig& serve, const ServedModel& served) {
  InferServerOptions options;
  options.model_name = !serve.model_name().empty() ? serve.model_name() : served.config().name();
  if (options.model_name.empty()) options.model_name = "plinth";
  options.http.host = serve.host();
  options.http.port = serve.http_port();
  options.metrics_run = serve.metrics_run();
  options.seed = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now()));
  if (serve.grpc_port() != 0) {
    options.grpc = GrpcOptions{.host = serve.host(),
                               .port = serve.grpc_port(),
                               .model_name = options.model_name,
                               .seed = options.seed};
  }
  return options;
}

// What a user can click on: a server on every interface is reached on this one as well.
std::string Address(const std::string& host, int port) {
  const bool any = host == "0.0.0.0" || host == "::";
  const std::string name = any ? "localhost" : host;
  const bool v6 = name.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", name, "]:", port) : absl::StrCat(name, ":", port);
}

absl::Status Serve(const config::ConfigFlags& flags) {
  ASSIGN_OR_RETURN(const config::RunConfig config, ReadConfig(flags));
  StopSignal stop;  // before the threads, which inherit what it sets
  const config::ServeConfig& serve = config.serve();
  ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> served,
                   ServedModel::Load(serve.checkpoint(), config.hardware()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, served->NewEngine(serve));
  const InferServerOptions options = OptionsFor(serve, *served);
  ASSIGN_OR_RETURN(const std::unique_ptr<InferServer> server,
                   InferServer::Start(*engine, served->tokenizer(), options));
  LOG(INFO) << served->checkpoint_dir() << ": step " << served->step() << ", serving as \""
            << options.model_name << "\"";
  if (server->grpc_port() != 0) {
    LOG(INFO) << "gRPC on " << Address(serve.host(), server->grpc_port());
  }
  std::cout << "http://" << Address(serve.host(), server->http_port()) << "/" << std::endl;
  stop.Wait();
  LOG(INFO) << "stopping; running replies may finish";
  if (!server->Drain(kDrainPatience)) LOG(WARNING) << "ending replies that are still running";
  return absl::OkStatus();
}

}  // namespace
}  // namespace plinth::infer

int main(int argc, char** argv) {
  plinth::SetProgramHelp(plinth::infer::kUsage);
  // gRPC would log errors that we report ourselves.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const auto flags = plinth::config::TakeConfigFlags(argc, argv);
  absl::Status status = flags.status();
  if (status.ok()) {
    plinth::ParseFlagsOnly("serve", argc, argv);
    status = plinth::infer::Serve(*flags);
  }
  if (status.ok()) return 0;
  return plinth::ReportError("serve", status);
}
