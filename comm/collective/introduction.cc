#include "plinth/comm/collective/introduction.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>
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

// Plain bytes; the choice of algorithms follows, cut, and then the names of the tables, cut.
struct Head {
  uint64_t host;
  uint64_t choice_hash;
  uint64_t tables_hash;
  uint64_t choice_bytes;
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

// What a note holds.
struct Introduced {
  Head head;
  std::string choice;  // cut, for people
  std::string tables;
};

// Nothing when the note is too short to be one of ours.
std::optional<Introduced> Read(std::span<const std::byte> note) {
  Introduced it;
  if (note.size() < sizeof(Head)) return std::nullopt;
  std::memcpy(&it.head, note.data(), sizeof(Head));
  const std::string_view text(reinterpret_cast<const char*>(note.data()) + sizeof(Head),
                              note.size() - sizeof(Head));
  const size_t cut = std::min<size_t>(it.head.choice_bytes, text.size());
  it.choice = text.substr(0, cut);
  it.tables = text.substr(cut);
  return it;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> Introduce(const CommOptions& options, const TableSet& tables,
                                                Transport& transport, absl::Time deadline) {
  const std::string_view choice = ChoiceOf(options);
  const std::string_view shown = choice.substr(0, kShownBytes);
  const Head own{HostKey(), Fnv1a(choice), tables.Hash(), shown.size()};
  std::string note(reinterpret_cast<const char*>(&own), sizeof(own));
  note.append(shown);
  note.append(options.tuning.substr(0, kShownBytes));

  std::vector<std::span<const std::byte>> notes;
  if (auto failure = transport.Announce(std::as_bytes(std::span(note)), notes, deadline)) {
    Fingerprint meeting;
    meeting.op = OpKind::kBarrier;
    const absl::Status status = Verdict(*failure, meeting, true, options.timeout);
    // As in a call: the others repeat this line instead of blaming the rank that gave up first.
    if (!absl::IsAborted(status)) transport.Abort(std::string(status.message()));
    return status;
  }
  std::vector<uint64_t> hosts;
  std::optional<Introduced> first;
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    const std::optional<Introduced> it = Read(notes[rank]);
    if (!it.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " introduced itself with ", notes[rank].size(),
                       " bytes, at least ", sizeof(Head), " expected: it is not of this version"));
    }
    if (rank == 0) first = it;
    hosts.push_back(it->head.host);
    const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
      return absl::FailedPreconditionError(
          absl::StrCat(what, ": rank ", rank, " \"", a, "\", rank 0 \"", b, "\""));
    };
    if (it->head.choice_hash != first->head.choice_hash) {
      return differ("the ranks were told to use different algorithms (PLINTH_COMM_ALGORITHM)",
                    it->choice, first->choice);
    }
    if (it->head.tables_hash != first->head.tables_hash) {
      return differ("the ranks have different tables to choose by (PLINTH_COMM_TUNING)", it->tables,
                    first->tables);
    }
  }
  return hosts;
}

}  // namespace plinth::comm
