#include "plinth/comm/collective/introduction.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "plinth/comm/call/verdict.h"
#include "plinth/comm/transport/shm/process.h"
#include "plinth/hardware/base/hash.h"

namespace plinth::comm {
namespace {

// Longer choices are compared by their hash and shown cut.
constexpr size_t kShownBytes = 400;

// Plain bytes; the choice of algorithms follows.
struct Head {
  uint64_t host;
  uint64_t choice_hash;
};

// Equal for ranks that share memory and a network: one boot of one kernel, one namespace of
// processes and one of interfaces.
uint64_t HostKey() {
  uint64_t key = Fnv1a(BootId());
  for (const char* path : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    struct stat space {};
    if (stat(path, &space) == 0) key = Fnv1a(std::to_string(space.st_ino), key);
  }
  return key;
}

std::string_view ChoiceOf(const CommOptions& options) {
  return options.algorithm.empty() ? std::string_view("auto") : options.algorithm;
}

std::string_view ChoiceIn(std::span<const std::byte> note) {
  return {reinterpret_cast<const char*>(note.data()) + sizeof(Head), note.size() - sizeof(Head)};
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> Introduce(const CommOptions& options, Transport& transport,
                                                absl::Time deadline) {
  const std::string_view choice = ChoiceOf(options);
  const Head own{HostKey(), Fnv1a(choice)};
  std::string note(reinterpret_cast<const char*>(&own), sizeof(own));
  note.append(choice.substr(0, kShownBytes));

  std::vector<std::span<const std::byte>> notes;
  if (auto failure = transport.Announce(std::as_bytes(std::span(note)), notes, deadline)) {
    Fingerprint meeting;
    meeting.op = OpKind::kBarrier;
    return Verdict(*failure, meeting, true, options.timeout);
  }
  std::vector<Head> heads(notes.size());
  std::vector<uint64_t> hosts;
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    if (notes[rank].size() < sizeof(Head)) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " introduced itself with ", notes[rank].size(),
                       " bytes, at least ", sizeof(Head), " expected: it is not of this version"));
    }
    std::memcpy(&heads[rank], notes[rank].data(), sizeof(Head));
    hosts.push_back(heads[rank].host);
    if (heads[rank].choice_hash == heads[0].choice_hash) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the ranks were told to use different algorithms (PLINTH_COMM_ALGORITHM): rank ", rank,
        " \"", std::string(ChoiceIn(notes[rank])), "\", rank 0 \"", std::string(ChoiceIn(notes[0])),
        "\""));
  }
  return hosts;
}

}  // namespace plinth::comm
