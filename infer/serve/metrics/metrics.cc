#include "plinth/infer/serve/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace plinth::infer {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Value(const char* name, const char* help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  return {name, help, type, {metric}};
}
MetricFamily Gauge(const char* name, const char* help, double value) {
  return Value(name, help, MetricType::Gauge, value);
}
MetricFamily Counter(const char* name, const char* help, int64_t value) {
  return Value(name, help, MetricType::Counter, static_cast<double>(value));
}

// The engine's figures, read at the moment of the scrape.
class EngineCollector : public prometheus::Collectable {
 public:
  explicit EngineCollector(const Engine& engine) : engine_(engine) {}

  std::vector<MetricFamily> Collect() const override {
    const EngineStats s = engine_.stats();
    return {
        Gauge("plinth_requests_running", "Requests in the batch.", s.running),
        Gauge("plinth_requests_waiting", "Requests waiting for a place.", s.waiting),
        Gauge("plinth_kv_pages_used", "Cache pages in use.", s.total_pages - s.free_pages),
        Gauge("plinth_kv_pages_total", "Cache pages.", s.total_pages),
        Gauge("plinth_step_seconds", "Age of the running step.", s.step_seconds),
        Counter("plinth_requests_total", "Requests accepted.", s.requests),
        Counter("plinth_requests_rejected_total", "Requests refused, queue full.", s.rejected),
        Counter("plinth_requests_finished_total", "Requests ended.", s.finished),
        Counter("plinth_prompt_tokens_total", "Prompt tokens read in.", s.prompt_tokens),
        Counter("plinth_generated_tokens_total", "Tokens generated.", s.generated_tokens),
        Counter("plinth_engine_steps_total", "Forward passes.", s.steps),
        Counter("plinth_preemptions_total", "Sequences that gave back pages.", s.preemptions),
    };
  }

 private:
  const Engine& engine_;
};

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    default:
      return "error";
  }
}

prometheus::Histogram& Histogram(prometheus::Registry& registry, const char* name,
                                 const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(
      {}, std::vector<double>{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
                              10, 30, 60});
}

}  // namespace

class ServeMetrics::Impl {
 public:
  explicit Impl(const Engine& engine) : engine_figures(engine) {}

  const EngineCollector engine_figures;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& http = prometheus::BuildCounter()
                                                      .Name("plinth_http_requests_total")
                                                      .Help("HTTP requests by route and status.")
                                                      .Register(registry);
  prometheus::Family<prometheus::Counter>& ends = prometheus::BuildCounter()
                                                      .Name("plinth_replies_total")
                                                      .Help("Replies by what ended them.")
                                                      .Register(registry);
  prometheus::Histogram& first_token = Histogram(registry, "plinth_time_to_first_token_seconds",
                                                 "From the request to its first token.");
  prometheus::Histogram& next_token =
      Histogram(registry, "plinth_time_per_token_seconds", "Between two tokens of a reply.");
};

ServeMetrics::ServeMetrics(const Engine& engine, absl::Duration stuck_after)
    : engine_(engine), stuck_after_(stuck_after), impl_(std::make_unique<Impl>(engine)) {}
ServeMetrics::~ServeMetrics() = default;

void ServeMetrics::CountHttp(const std::string& route, int status) {
  impl_->http.Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
}

void ServeMetrics::ObserveFirstToken(absl::Duration since_request) {
  impl_->first_token.Observe(absl::ToDoubleSeconds(since_request));
}

void ServeMetrics::ObserveNextToken(absl::Duration since_last) {
  impl_->next_token.Observe(absl::ToDoubleSeconds(since_last));
}

void ServeMetrics::ObserveEnd(FinishReason reason) {
  impl_->ends.Add({{"reason", Name(reason)}}).Increment();
  // A cancelled request says nothing about the engine.
  if (reason != FinishReason::kCancelled) failed_ = reason == FinishReason::kError;
}

std::string ServeMetrics::Text() const {
  std::vector<MetricFamily> families = impl_->engine_figures.Collect();
  std::vector<MetricFamily> counted = impl_->registry.Collect();
  std::move(counted.begin(), counted.end(), std::back_inserter(families));
  return prometheus::TextSerializer().Serialize(families);
}

absl::Status ServeMetrics::Health() const {
  if (draining_) return absl::UnavailableError("the server is stopping");
  const double step = engine_.stats().step_seconds;
  if (step > absl::ToDoubleSeconds(stuck_after_)) {
    return absl::UnavailableError(
        absl::StrFormat("the engine's step has been running for %.1f s", step));
  }
  if (failed_) return absl::UnavailableError("the engine's last request failed");
  return absl::OkStatus();
}

}  // namespace plinth::infer
