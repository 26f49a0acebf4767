#include "plinth/infer/serve/server.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/infer/serve/metrics/training_log.h"
#include "plinth/infer/serve/page/page_files.h"

namespace plinth::infer {
namespace {

constexpr int64_t kMaxTrainingBytes = 1 << 20;  // of one answer
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

// Passes an answer on and remembers its status.
class CountedResponse : public http::Response {
 public:
  explicit CountedResponse(http::Response& response) : response_(response) {}

  void Send(int status, std::string_view content_type, std::string_view body,
            const http::Headers& headers) override {
    status_ = status;
    response_.Send(status, content_type, body, headers);
  }
  void StartStream(std::string_view content_type) override {
    status_ = 200;
    response_.StartStream(content_type);
  }
  bool Write(std::string_view data) override { return response_.Write(data); }
  void Finish() override { response_.Finish(); }
  bool Gone() override { return response_.Gone(); }

  // 499: the client left before there was an answer.
  int status() const { return status_; }

 private:
  http::Response& response_;
  int status_ = 499;
};

// Answers 405 unless the method fits; GET stands for HEAD as well.
bool Allows(const http::Request& request, const char* method, http::Response& response) {
  if (request.method == method) return true;
  if (request.method == "HEAD" && std::string_view(method) == "GET") return true;
  const ErrorReply error = ErrorFor(absl::InvalidArgumentError(
      absl::StrCat("method ", request.method, " is not allowed here, only ", method)));
  response.Send(405, "application/json", error.body, {{"Allow", method}});
  return false;
}

const PageFile* FindPage(const std::string& path) {
  const std::string name = path == "/" ? "index.html" : path.substr(sizeof("/page/") - 1);
  for (const PageFile& file : PageFiles()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace

InferServer::InferServer(Engine& engine, const models::Tokenizer& tokenizer,
                         InferServerOptions options)
    : options_(std::move(options)),
      metrics_(engine, options_.stuck_after),
      openai_(engine, tokenizer, metrics_,
              {.model_name = options_.model_name, .seed = options_.seed}) {}

InferServer::~InferServer() = default;

absl::StatusOr<std::unique_ptr<InferServer>> InferServer::Start(Engine& engine,
                                                                const models::Tokenizer& tokenizer,
                                                                InferServerOptions options) {
  std::unique_ptr<InferServer> server(new InferServer(engine, tokenizer, std::move(options)));
  ASSIGN_OR_RETURN(
      server->http_,
      http::Server::Start(server->options_.http, [raw = server.get()](const http::Request& request,
                                                                      http::Response& response) {
        raw->Handle(request, response);
      }));
  // Second: of a host that cannot be listened on, HTTP knows the reason.
  if (server->options_.grpc.has_value()) {
    ASSIGN_OR_RETURN(server->grpc_, GrpcServer::Start(engine, tokenizer, server->metrics_,
                                                      *server->options_.grpc));
  }
  return server;
}

bool InferServer::Drain(absl::Duration patience) {
  metrics_.SetDraining();
  const absl::Time deadline = absl::Now() + patience;
  const auto busy = [this] { return active_ > 0 || (grpc_ != nullptr && grpc_->active() > 0); };
  while (busy() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
  return !busy();
}

void InferServer::Handle(const http::Request& request, http::Response& response) {
  ++active_;
  CountedResponse counted(response);
  std::string route = "other";
  Route(request, counted, route);
  metrics_.CountHttp(route, counted.status());
  --active_;
}

void InferServer::Route(const http::Request& request, http::Response& response,
                        std::string& route) {
  const std::string& path = request.path;
  const auto is = [&](const char* known) {
    if (path == known) route = known;
    return path == known;
  };
  if (is("/v1/completions")) {
    if (Allows(request, "POST", response)) openai_.Completions(request, response);
  } else if (is("/v1/chat/completions")) {
    if (Allows(request, "POST", response)) openai_.Chat(request, response);
  } else if (is("/v1/models")) {
    if (Allows(request, "GET", response)) openai_.Models(request, response);
  } else if (path.starts_with("/v1/models/")) {
    route = "/v1/models";
    if (Allows(request, "GET", response)) openai_.Model(request, response);
  } else if (is("/healthz")) {
    if (Allows(request, "GET", response)) Health(response);
  } else if (is("/metrics")) {
    if (Allows(request, "GET", response)) response.Send(200, kPrometheusText, metrics_.Text());
  } else if (is("/training/metrics")) {
    if (Allows(request, "GET", response)) TrainingMetrics(request, response);
  } else if (const PageFile* file =
                 path == "/" || path.starts_with("/page/") ? FindPage(path) : nullptr) {
    route = "/page";
    if (Allows(request, "GET", response)) {
      response.Send(200, file->content_type, file->contents, {{"Cache-Control", "no-cache"}});
    }
  } else {
    SendError(response, absl::NotFoundError("no such path; see / for what is here"));
  }
}

void InferServer::Health(http::Response& response) {
  const absl::Status health = metrics_.Health();
  if (!health.ok()) return SendError(response, health);
  response.Send(200, "application/json", R"({"status":"ok"})");
}

void InferServer::TrainingMetrics(const http::Request& request, http::Response& response) {
  int64_t offset = 0;
  if (const auto text = request.Parameter("offset"); text && !absl::SimpleAtoi(*text, &offset)) {
    return SendError(response, absl::InvalidArgumentError("offset: expected a byte offset"));
  }
  const absl::StatusOr<TrainingLines> lines =
      ReadTrainingLines(options_.metrics_run, offset, kMaxTrainingBytes);
  if (!lines.ok()) return SendError(response, lines.status());
  response.Send(
      200, "application/x-ndjson", lines->lines,
      {{"X-Next-Offset", absl::StrCat(lines->next_offset)}, {"Cache-Control", "no-store"}});
}

}  // namespace plinth::infer
