#include "plinth/comm/tuner/choice.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plinth/comm/program/algorithms/algorithms.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// What slices are worth is priced up to here; pins may go beyond.
constexpr int kMostPricedSlices = 128;
// A part of a block smaller than this is not worth a step.
constexpr int64_t kLeastPartBytes = 4096;
// Scratch of one rank; a vector that needs more goes through in slices.
constexpr int64_t kMostScratchBytes = int64_t{64} << 20;

constexpr OpKind kOps[] = {OpKind::kAllReduce,  OpKind::kReduceScatter, OpKind::kAllGather,
                           OpKind::kBroadcast,  OpKind::kReduce,        OpKind::kGather,
                           OpKind::kScatter,    OpKind::kAllToAll,      OpKind::kReduceScatterV,
                           OpKind::kAllGatherV, OpKind::kAllToAllV};

absl::string_view Abseil(std::string_view text) { return {text.data(), text.size()}; }

std::string OpNames() {
  std::string names;
  for (const OpKind op : kOps) absl::StrAppend(&names, names.empty() ? "" : ", ", OpName(op));
  return names;
}

// The algorithms that can do `op`, and direct, which does all of them.
std::string NamesFor(OpKind op) {
  std::string names(kDirect);
  for (const Algorithm& algorithm : Algorithms()) {
    if (algorithm.Supports(op)) absl::StrAppend(&names, ", ", Abseil(algorithm.name));
  }
  return names;
}

std::optional<OpKind> FindOp(absl::string_view name) {
  for (const OpKind op : kOps) {
    if (name == OpName(op)) return op;
  }
  return std::nullopt;
}

bool CanDo(std::string_view algorithm, OpKind op) {
  if (algorithm == kDirect) return true;
  const Algorithm* found = FindAlgorithm(algorithm);
  return found != nullptr && found->Supports(op);
}

absl::StatusOr<std::pair<OpKind, Pin>> ParsePin(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const absl::string_view op_name = absl::StripAsciiWhitespace(sides.first);
  const std::optional<OpKind> op = FindOp(op_name);
  if (!op.has_value()) {
    const bool alone = !op_name.empty() && text.find('=') == absl::string_view::npos;
    return absl::InvalidArgumentError(
        absl::StrCat(alone ? "neither an algorithm nor an operation and its algorithm: \""
                           : "unknown operation \"",
                     op_name, "\"; operations known: ", OpNames()));
  }
  const size_t colon = sides.second.find(':');
  Pin pin{std::string(absl::StripAsciiWhitespace(sides.second.substr(0, colon)))};
  if (pin.algorithm != kDirect && FindAlgorithm(pin.algorithm) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown algorithm \"", pin.algorithm,
                                                   "\"; known for ", op_name, ": ", NamesFor(*op)));
  }
  if (!CanDo(pin.algorithm, *op)) {
    return absl::InvalidArgumentError(
        absl::StrCat(pin.algorithm, " has no ", op_name, "; known for it: ", NamesFor(*op)));
  }
  if (colon == absl::string_view::npos) return std::pair(*op, pin);
  const absl::string_view slices = sides.second.substr(colon + 1);
  if (!absl::SimpleAtoi(slices, &pin.slices) || pin.slices < 1 || pin.slices > kMostSlices) {
    return absl::InvalidArgumentError(
        absl::StrCat("want 1 to ", kMostSlices, " slices, got \"", slices, "\""));
  }
  return std::pair(*op, pin);
}

// By powers of two.
Question ClassOf(Question question) {
  question.bytes = static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::clamp<int64_t>(question.bytes, 0, int64_t{1} << 61))));
  question.ranks_per_host = std::clamp(question.ranks_per_host, 1, question.size);
  return question;
}

Volume VolumeOf(const Question& question) {
  return {question.bytes, static_cast<double>(question.partial_bytes) / question.element_bytes};
}

// With the number of slices that costs least, or `pinned_slices`.
Choice Priced(const Algorithm& algorithm, const Question& question, const CostModel& model,
              int pinned_slices) {
  const Problem problem{question.op, question.size, 0, question.ranks_per_host};
  const ProgramCost cost(problem, GenerateAllPrograms(algorithm, problem));
  const Volume volume = VolumeOf(question);
  Choice best{algorithm.name, 0, algorithm.pipelined, 0};
  const auto consider = [&](int slices) {
    const double us = cost.Price(model, volume, slices, algorithm.pipelined);
    if (best.slices == 0 || us < best.estimate_us) {
      best.slices = slices;
      best.estimate_us = us;
    }
  };
  if (pinned_slices > 0) {
    consider(pinned_slices);
    return best;
  }
  const auto too_much_scratch = [&](int slices) {
    return cost.ScratchBytes(volume, slices, algorithm.pipelined) > kMostScratchBytes;
  };
  int slices = 1;
  while (slices < kMostSlices && too_much_scratch(slices)) slices *= 2;
  consider(slices);
  if (!algorithm.pipelined) return best;
  for (slices *= 2; slices <= kMostPricedSlices; slices *= 2) {
    if (cost.BlockBytes(volume) / slices < kLeastPartBytes) break;
    consider(slices);
  }
  return best;
}

Choice PricedDirect(const Question& question, const CostModel& model) {
  const double us =
      model.direct.alpha_us + static_cast<double>(question.bytes) / model.direct.mb_per_s;
  return {kDirect, 1, false, us};
}

std::string BytesText(int64_t bytes) {
  if (bytes >= 1 << 20) return absl::StrFormat("%g MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return absl::StrFormat("%g KiB", static_cast<double>(bytes) / (1 << 10));
  return absl::StrCat(bytes, " B");
}

}  // namespace

absl::StatusOr<Pins> ParsePins(std::string_view text) {
  Pins pins;
  if (absl::StripAsciiWhitespace(Abseil(text)).empty()) return pins;
  for (const absl::string_view item : absl::StrSplit(Abseil(text), ',')) {
    ASSIGN_OR_RETURN(auto pin, ParsePin(item));
    if (!pins.insert(pin).second) {
      return absl::InvalidArgumentError(absl::StrCat(OpName(pin.first), " is pinned twice"));
    }
  }
  return pins;
}

Tuner::Tuner(CostTable table, Pins pins) : table_(std::move(table)), pins_(std::move(pins)) {}

absl::StatusOr<Choice> Tuner::Choose(const Question& question) {
  const Question rounded = ClassOf(question);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = known_.find(rounded.Key());
  if (known != known_.end()) return known->second;
  ASSIGN_OR_RETURN(const Choice choice, Decide(rounded));
  known_.emplace(rounded.Key(), choice);
  return choice;
}

std::optional<Pin> Tuner::PinFor(OpKind op) const {
  const auto own = pins_.find(op);
  if (own != pins_.end()) return own->second;
  const auto plain = pins_.find(PlainOp(op));
  if (plain != pins_.end() && CanDo(plain->second.algorithm, op)) return plain->second;
  return std::nullopt;
}

// In the order of the list, `direct` first.
std::vector<Choice> Tuner::Candidates(const Question& question) const {
  std::vector<Choice> candidates;
  if (question.direct) candidates.push_back(PricedDirect(question, table_.model));
  const bool hosts = question.ranks_per_host > 1 && question.ranks_per_host < question.size;
  for (const Algorithm& algorithm : Algorithms()) {
    if (!algorithm.Supports(question.op) || (algorithm.needs_hosts && !hosts)) continue;
    candidates.push_back(Priced(algorithm, question, table_.model, 0));
  }
  // Equal prices keep the order of the list.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Choice& a, const Choice& b) { return a.estimate_us < b.estimate_us; });
  return candidates;
}

absl::StatusOr<Choice> Tuner::Decide(const Question& question) const {
  const std::optional<Pin> pin = PinFor(question.op);
  if (!pin.has_value()) return Candidates(question).front();
  if (pin->algorithm != kDirect) {
    return Priced(*FindAlgorithm(pin->algorithm), question, table_.model, pin->slices);
  }
  if (question.direct) return PricedDirect(question, table_.model);
  return absl::FailedPreconditionError(absl::StrCat(
      OpName(question.op), "=direct is pinned, but the ranks of this call share no memory"));
}

std::string Tuner::Explain(const Question& asked) const {
  const Question question = ClassOf(asked);
  const int hosts = (question.size + question.ranks_per_host - 1) / question.ranks_per_host;
  std::string text = absl::StrCat(OpName(question.op), " over ", question.size, " ranks on ", hosts,
                                  hosts == 1 ? " host" : " hosts", ", ", BytesText(asked.bytes),
                                  " of ", question.element_bytes, "-byte elements, priced as ",
                                  BytesText(question.bytes), " over ", table_.transport, "\n");
  const absl::StatusOr<Choice> choice = Decide(question);
  std::vector<Choice> rows = Candidates(question);
  if (choice.ok()) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Choice& row) {
      return row.algorithm == choice->algorithm;
    });
    // A pin may have slices of its own, or name what is no candidate.
    if (same != rows.end()) rows.erase(same);
    rows.insert(rows.begin(), *choice);
  }
  for (const Choice& row : rows) {
    absl::StrAppendFormat(&text, "%s %-18s %12.1f us  %4d %s\n",
                          choice.ok() && row.algorithm == choice->algorithm ? "*" : " ",
                          std::string(row.algorithm), row.estimate_us, row.slices,
                          row.slices == 1 ? "slice" : "slices");
  }
  if (!choice.ok()) return absl::StrCat(text, std::string(choice.status().message()), "\n");
  const bool pinned = PinFor(question.op).has_value();
  absl::StrAppend(&text, "chosen: ", Abseil(choice->algorithm),
                  pinned ? ", because it is pinned" : ", because its estimate is the lowest", "\n");
  return text;
}

}  // namespace plinth::comm
