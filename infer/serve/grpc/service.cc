#include "plinth/infer/serve/grpc/service.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plinth/hardware/base/rng.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/infer/load/prompt.h"
#include "plinth/infer/serve/generation/generation.h"
#include "plinth/infer/serve/grpc/generate.grpc.pb.h"

namespace plinth::infer {
namespace {

constexpr int kMaxTopLogprobs = 20;
// How often a call that waits for the engine looks whether its client is still there.
constexpr absl::Duration kPatience = absl::Milliseconds(100);

// The codes have the same numbers.
grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::StatusOr<std::vector<int32_t>> PromptIds(const ::plinth::GenerateRequest& request,
                                               const models::Tokenizer& tokenizer) {
  if (request.has_tokens()) {
    return std::vector<int32_t>(request.tokens().ids().begin(), request.tokens().ids().end());
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodePrompt(tokenizer, request.text()), _ << "text");
  return ids;
}

absl::StatusOr<GenerateRequest> ToEngine(const ::plinth::GenerateRequest& request,
                                         const models::Tokenizer& tokenizer, uint64_t seed) {
  GenerateRequest result;
  ASSIGN_OR_RETURN(result.prompt, PromptIds(request, tokenizer));
  if (request.has_max_tokens()) result.max_tokens = request.max_tokens();
  const Sampling& sampling = request.sampling();
  result.sampling = {.temperature = sampling.has_temperature() ? sampling.temperature() : 1,
                     .top_k = sampling.top_k(),
                     .top_p = sampling.has_top_p() ? sampling.top_p() : 1,
                     .min_p = sampling.min_p(),
                     .seed = sampling.has_seed() ? sampling.seed() : seed};
  result.stop.assign(request.stop().begin(), request.stop().end());
  result.ignore_end = request.ignore_end();
  result.prompt_logprobs = request.prompt_logprobs();
  if (request.has_top_logprobs()) {
    if (request.top_logprobs() < 0 || request.top_logprobs() > kMaxTopLogprobs) {
      return absl::InvalidArgumentError(absl::StrCat(
          "top_logprobs: must be in [0, ", kMaxTopLogprobs, "], got ", request.top_logprobs()));
    }
    result.top_logprobs = request.top_logprobs();
  }
  return result;
}

void Fill(const TokenEvent& event, Token& token) {
  token.set_id(event.id);
  if (!event.logprobs.has_value()) return;
  token.set_logprob(event.logprobs->chosen.logprob);
  for (const TokenLogprob& other : event.logprobs->top) {
    ::plinth::TokenLogprob& top = *token.add_top();
    top.set_id(other.id);
    top.set_logprob(other.logprob);
  }
}

class GenerateService final : public Generate::Service {
 public:
  GenerateService(Engine& engine, const models::Tokenizer& tokenizer, ServeMetrics& metrics,
                  const GrpcOptions& options)
      : engine_(engine), tokenizer_(tokenizer), metrics_(metrics), options_(options) {}

  grpc::Status Generate(grpc::ServerContext* context, const ::plinth::GenerateRequest* request,
                        grpc::ServerWriter<GenerateReply>* writer) override {
    ++active_;
    const absl::Status status = Answer(*context, *request, *writer);
    --active_;
    return ToGrpc(status);
  }

  int64_t active() const { return active_; }

 private:
  absl::Status Answer(grpc::ServerContext& context, const ::plinth::GenerateRequest& request,
                      grpc::ServerWriter<GenerateReply>& writer) {
    if (metrics_.draining()) return absl::UnavailableError("the server is stopping");
    if (!request.model().empty() && request.model() != options_.model_name) {
      return absl::NotFoundError(absl::StrCat("model: \"", request.model(),
                                              "\" is not served here, only \"", options_.model_name,
                                              "\""));
    }
    const uint64_t seed = RandomBits(options_.seed, 2, requests_.fetch_add(1));
    ASSIGN_OR_RETURN(infer::GenerateRequest engine_request, ToEngine(request, tokenizer_, seed));
    Usage usage;
    usage.set_prompt_tokens(static_cast<int64_t>(engine_request.prompt.size()));
    ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                     Generation::Start(engine_, std::move(engine_request), metrics_));
    while (true) {
      const std::vector<GenerateEvent> events = generation->Wait(kPatience);
      // Also when the call's deadline has passed; gRPC then reports DEADLINE_EXCEEDED.
      if (context.IsCancelled()) return absl::CancelledError("the call was cancelled");
      for (const GenerateEvent& event : events) {
        if (event.finish == FinishReason::kError) return event.error;
        if (event.finish == FinishReason::kCancelled) {
          return absl::UnavailableError("the server is stopping");
        }
        if (!writer.Write(ToReply(event, usage))) return absl::CancelledError("the client left");
        if (event.finish != FinishReason::kNone) return absl::OkStatus();
      }
    }
  }

  static GenerateReply ToReply(const GenerateEvent& event, Usage& usage) {
    GenerateReply reply;
    reply.set_text(event.text);
    for (const TokenEvent& token : event.prompt) Fill(token, *reply.add_prompt());
    if (event.token.has_value()) {
      usage.set_generated_tokens(usage.generated_tokens() + 1);
      Fill(*event.token, *reply.mutable_token());
    }
    if (event.finish != FinishReason::kNone) {
      reply.set_finish(event.finish == FinishReason::kStop ? STOP : LENGTH);
      *reply.mutable_usage() = usage;
    }
    return reply;
  }

  Engine& engine_;
  const models::Tokenizer& tokenizer_;
  ServeMetrics& metrics_;
  const GrpcOptions options_;
  std::atomic<uint64_t> requests_{0};
  std::atomic<int64_t> active_{0};
};

class GrpcServerImpl : public GrpcServer {
 public:
  GrpcServerImpl(Engine& engine, const models::Tokenizer& tokenizer, ServeMetrics& metrics,
                 const GrpcOptions& options)
      : metrics_(metrics), service_(engine, tokenizer, metrics, options) {}

  ~GrpcServerImpl() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (health_thread_.joinable()) health_thread_.join();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const GrpcOptions& options) {
    // Never undone: the library's own teardown, when its last user goes, can wait 10 s for a
    // thread that polls.
    grpc_init();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat(options.host, ":", options.port),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    // Otherwise a second server would share the port in silence.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A client may ping as it likes while a long prompt is read in.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options.host, ":",
                                                 options.port, " (gRPC): address in use?"));
    }
    health_thread_ = std::thread([this] { FollowHealth(); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  int64_t active() const override { return service_.active(); }

 private:
  void FollowHealth() {
    grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      health->SetServingStatus(metrics_.Health().ok());  // the server as a whole
      health->SetServingStatus("plinth.Generate", metrics_.Health().ok());
      wake_.wait_for(lock, std::chrono::milliseconds(500));
    }
  }

  ServeMetrics& metrics_;
  GenerateService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread health_thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(Engine& engine,
                                                              const models::Tokenizer& tokenizer,
                                                              ServeMetrics& metrics,
                                                              const GrpcOptions& options) {
  auto server = std::make_unique<GrpcServerImpl>(engine, tokenizer, metrics, options);
  RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace plinth::infer
