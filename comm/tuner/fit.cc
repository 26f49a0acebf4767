#include "plinth/comm/tuner/fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/median.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

struct Line {
  double alpha = 0;  // us
  double beta = 0;   // us per byte

  double At(int64_t bytes) const {
    constexpr double kLeastUs = 1e-9;
    return std::max(alpha + beta * static_cast<double>(bytes), kLeastUs);
  }
  // Of a time twice as long, as much as of one half as long.
  double LogError(const Sample& sample) const { return std::log(sample.us / At(sample.bytes)); }
};

absl::Status CheckSamples(std::span<const Sample> samples) {
  bool different = false;
  for (const Sample& sample : samples) {
    if (sample.bytes < 0 || !(sample.us > 0) || !std::isfinite(sample.us)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a sample of ", sample.bytes, " bytes in ", sample.us, " us"));
    }
    different |= sample.bytes != samples[0].bytes;
  }
  if (!different) return absl::InvalidArgumentError("samples of fewer than two different sizes");
  return absl::OkStatus();
}

// One Gauss-Newton step from `line` towards the least sum of weights[i] * LogError(i)^2.
Line Improved(const Line& line, std::span<const Sample> samples,
              const std::vector<double>& weights) {
  double s_aa = 0, s_ab = 0, s_bb = 0, s_a = 0, s_b = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double a = 1 / line.At(samples[i].bytes);
    const double b = a * static_cast<double>(samples[i].bytes);
    const double want = 1 + line.LogError(samples[i]);
    s_aa += weights[i] * a * a;
    s_ab += weights[i] * a * b;
    s_bb += weights[i] * b * b;
    s_a += weights[i] * a * want;
    s_b += weights[i] * b * want;
  }
  const double determinant = s_aa * s_bb - s_ab * s_ab;
  Line better;
  if (determinant > 0) {
    better.alpha = (s_a * s_bb - s_b * s_ab) / determinant;
    better.beta = (s_b * s_aa - s_a * s_ab) / determinant;
  }
  if (better.alpha < 0 || determinant <= 0) {
    better.alpha = 0;
    better.beta = s_bb > 0 ? s_b / s_bb : 0;
  }
  if (better.beta < 0) return {s_aa > 0 ? s_a / s_aa : 0, 0};
  return better;
}

// From the medians of the shortest and the longest fifth.
Line FirstGuess(std::span<const Sample> samples) {
  std::vector<Sample> sorted(samples.begin(), samples.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; });
  const size_t fifth = (sorted.size() + 4) / 5;
  std::vector<double> shortest;
  std::vector<double> per_byte;
  for (size_t i = 0; i < fifth; ++i) {
    const Sample& longest = sorted[sorted.size() - 1 - i];
    shortest.push_back(sorted[i].us);
    per_byte.push_back(longest.us / static_cast<double>(std::max<int64_t>(longest.bytes, 1)));
  }
  return {Median(shortest), Median(per_byte)};
}

std::vector<double> Errors(std::span<const Sample> samples, const Line& line) {
  std::vector<double> errors;
  for (const Sample& sample : samples) errors.push_back(std::fabs(line.LogError(sample)));
  return errors;
}

}  // namespace

absl::StatusOr<LinkFit> FitLink(std::span<const Sample> samples) {
  RETURN_IF_ERROR(CheckSamples(samples));
  std::vector<double> weights(samples.size(), 1.0);
  Line line = FirstGuess(samples);
  // First towards the least sum of absolute errors, which no single sample can pull far; from
  // there on without those that are far off.
  constexpr int kTurns = 30;
  constexpr double kLeastError = 1e-6;  // below which errors are not told apart
  for (int turn = 0; turn < 2 * kTurns; ++turn) {
    const std::vector<double> errors = Errors(samples, line);
    // Six times the median, about four standard deviations of normal noise.
    const double limit = std::max(6 * Median(errors), kLeastError);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double part = errors[i] / limit;
      const double biweight = part < 1 ? (1 - part * part) * (1 - part * part) : 0;
      weights[i] = turn < kTurns ? 1 / std::max(errors[i], kLeastError) : biweight;
    }
    line = Improved(line, samples, weights);
  }
  if (!(line.beta > 0)) return absl::InvalidArgumentError("times do not grow with the size");
  LinkFit fit;
  fit.cost = {line.alpha, 1 / line.beta};
  std::vector<double> inliers;
  const std::vector<double> errors = Errors(samples, line);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (weights[i] > 0) inliers.push_back(errors[i]);
  }
  fit.outliers = static_cast<int>(samples.size() - inliers.size());
  fit.relative_error = Median(inliers);
  return fit;
}

}  // namespace plinth::comm
