#include "plinth/comm/rendezvous/environment.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr const char* kRequired[] = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                     "MASTER_ADDR", "MASTER_PORT"};

std::string TextOf(const EnvironmentLookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value == nullptr ? std::string() : std::string(value);
}

absl::StatusOr<int> NumberOf(const EnvironmentLookup& lookup, const char* name, int least,
                             int most) {
  const std::string text = TextOf(lookup, name);
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=\"", text, "\" is not a whole number from ", least, " to ", most));
  }
  return value;
}

// `part` must lie below `whole`.
absl::Status CheckBelow(const char* part_name, int part, const char* whole_name, int whole) {
  if (part < whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part_name, "=", part, " is not below ", whole_name, "=", whole));
}

absl::Status CheckPlaces(const CommOptions& options) {
  RETURN_IF_ERROR(CheckBelow("RANK", options.rank, "WORLD_SIZE", options.size));
  RETURN_IF_ERROR(
      CheckBelow("LOCAL_RANK", options.local_rank, "LOCAL_WORLD_SIZE", options.local_size));
  if (options.local_size > options.size) {
    return absl::InvalidArgumentError(absl::StrCat("LOCAL_WORLD_SIZE=", options.local_size,
                                                   " is more than WORLD_SIZE=", options.size));
  }
  if (options.local_size == options.size && options.local_rank != options.rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("LOCAL_RANK=", options.local_rank, " differs from RANK=", options.rank,
                     " though LOCAL_WORLD_SIZE=", options.local_size, " says all are on one host"));
  }
  return absl::OkStatus();
}

absl::Status ReadExtras(const EnvironmentLookup& lookup, CommOptions& options) {
  options.run_id = TextOf(lookup, "PLINTH_RUN_ID");
  if (options.run_id.empty()) options.run_id = TextOf(lookup, "TORCHELASTIC_RUN_ID");

  const std::string transport = TextOf(lookup, "PLINTH_TRANSPORT");
  if (transport == "shm") {
    options.transport = TransportKind::kShm;
  } else if (transport == "tcp") {
    options.transport = TransportKind::kTcp;
  } else if (!transport.empty() && transport != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("PLINTH_TRANSPORT=\"", transport, "\" is none of auto, shm, tcp"));
  }

  const std::string timeout = TextOf(lookup, "PLINTH_COMM_TIMEOUT");
  if (!timeout.empty() && (!absl::ParseDuration(timeout, &options.timeout) ||
                           options.timeout <= absl::ZeroDuration())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PLINTH_COMM_TIMEOUT=\"", timeout, "\" is not a duration above zero such as 60s or 5m"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommOptions> OptionsFromEnvironment(const EnvironmentLookup& lookup) {
  std::vector<std::string> present;
  std::vector<std::string> missing;
  for (const char* name : kRequired) {
    (TextOf(lookup, name).empty() ? missing : present).push_back(name);
  }
  CommOptions options;
  RETURN_IF_ERROR(ReadExtras(lookup, options));
  if (present.empty()) return options;
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(missing, ", "), " not set, though ",
                     absl::StrJoin(present, ", "), present.size() == 1 ? " is" : " are",
                     ": a launcher sets all of ", absl::StrJoin(kRequired, ", "), " or none"));
  }
  constexpr int kMostRanks = 1 << 20;
  ASSIGN_OR_RETURN(options.size, NumberOf(lookup, "WORLD_SIZE", 1, kMostRanks));
  ASSIGN_OR_RETURN(options.rank, NumberOf(lookup, "RANK", 0, kMostRanks));
  ASSIGN_OR_RETURN(options.local_size, NumberOf(lookup, "LOCAL_WORLD_SIZE", 1, kMostRanks));
  ASSIGN_OR_RETURN(options.local_rank, NumberOf(lookup, "LOCAL_RANK", 0, kMostRanks));
  ASSIGN_OR_RETURN(options.store_port, NumberOf(lookup, "MASTER_PORT", 1, UINT16_MAX - 1));
  RETURN_IF_ERROR(CheckPlaces(options));
  options.store_host = TextOf(lookup, "MASTER_ADDR");
  if (TextOf(lookup, "TORCHELASTIC_USE_AGENT_STORE") == "True") ++options.store_port;
  return options;
}

absl::StatusOr<CommOptions> OptionsFromEnvironment() {
  return OptionsFromEnvironment([](const char* name) { return std::getenv(name); });
}

}  // namespace plinth::comm
