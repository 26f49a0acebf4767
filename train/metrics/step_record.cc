#include "plinth/train/metrics/step_record.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plinth::train {
namespace {

std::string Number(double value) {
  // 17 digits name every double.
  return std::isfinite(value) ? absl::StrFormat("%.17g", value) : "null";
}

std::string Scaled(double value) {
  if (value >= 1e12) return absl::StrFormat("%.1fT", value / 1e12);
  if (value >= 1e9) return absl::StrFormat("%.1fG", value / 1e9);
  if (value >= 1e6) return absl::StrFormat("%.1fM", value / 1e6);
  if (value >= 1e3) return absl::StrFormat("%.1fk", value / 1e3);
  return absl::StrFormat("%.0f", value);
}

std::string TimeLeft(double seconds) {
  const int64_t s = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (s >= 3600) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  if (s >= 60) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  return absl::StrFormat("%ds", s);
}

}  // namespace

std::string ToJson(const StepRecord& r, double wall_time_seconds) {
  std::string json = absl::StrCat(
      "{\"step\":", r.step, ",\"steps\":", r.steps, ",\"loss\":", Number(r.loss),
      ",\"gradient_norm\":", Number(r.gradient_norm),
      ",\"learning_rate\":", Number(r.learning_rate), ",\"tokens\":", r.tokens,
      ",\"tokens_per_second\":", Number(r.tokens_per_second),
      ",\"flops_per_second\":", Number(r.flops_per_second), ",\"mfu\":", Number(r.mfu),
      ",\"seconds_left\":", Number(r.seconds_left), ",\"time\":", Number(wall_time_seconds));
  if (r.eval) {
    absl::StrAppend(&json, ",\"eval_loss\":", Number(r.eval->loss),
                    ",\"eval_bits_per_byte\":", Number(r.eval->bits_per_byte));
  }
  return json + "}";
}

std::vector<Scalar> ToScalars(const StepRecord& r) {
  std::vector<Scalar> scalars = {{"train/loss", r.loss},
                                 {"train/gradient_norm", r.gradient_norm},
                                 {"train/learning_rate", r.learning_rate},
                                 {"speed/tokens_per_second", r.tokens_per_second}};
  if (r.flops_per_second > 0) scalars.push_back({"speed/flops_per_second", r.flops_per_second});
  if (r.mfu > 0) scalars.push_back({"speed/mfu", r.mfu});
  if (r.eval) {
    scalars.push_back({"eval/loss", r.eval->loss});
    if (r.eval->bits_per_byte > 0) {
      scalars.push_back({"eval/bits_per_byte", r.eval->bits_per_byte});
    }
  }
  return scalars;
}

std::string ToLine(const StepRecord& r) {
  std::string line = absl::StrFormat("step %d/%d  loss %.4f  %s tok/s", r.step, r.steps, r.loss,
                                     Scaled(r.tokens_per_second));
  if (r.flops_per_second > 0) absl::StrAppend(&line, "  ", Scaled(r.flops_per_second), "FLOP/s");
  if (r.mfu > 0) absl::StrAppendFormat(&line, " (%.0f%% MFU)", 100 * r.mfu);
  absl::StrAppendFormat(&line, "  |g| %.3g  lr %.2e  %s left", r.gradient_norm, r.learning_rate,
                        TimeLeft(r.seconds_left));
  if (r.eval) {
    absl::StrAppendFormat(&line, "  held-out %.4f nats/token", r.eval->loss);
    if (r.eval->bits_per_byte > 0) {
      absl::StrAppendFormat(&line, ", %.4f bits/byte", r.eval->bits_per_byte);
    }
  }
  return line;
}

}  // namespace plinth::train
