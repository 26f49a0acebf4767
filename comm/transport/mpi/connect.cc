#include "plinth/comm/transport/mpi/connect.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plinth/comm/transport/mpi/channel.h"
#include "plinth/comm/transport/mpi/library.h"
#include "plinth/comm/transport/mpi/places.h"
#include "plinth/hardware/base/hash.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr char kError[] = "error ";

// Publishes what this rank has to say in a step of forming the group, or why it cannot go on, and
// returns what each rank said. A rank's problem is everybody's error.
absl::StatusOr<std::vector<std::string>> Gather(const CommOptions& options, Store& store,
                                                const std::string& step,
                                                const absl::StatusOr<std::string>& own,
                                                absl::Time deadline) {
  const auto key = [&](int rank) { return absl::StrCat(options.group, "/mpi/", step, "/", rank); };
  const std::string text =
      own.ok() ? *own : absl::StrCat(kError, std::string(own.status().message()));
  RETURN_IF_ERROR(store.Set(key(options.rank), text, deadline));
  RETURN_IF_ERROR(own.status());
  std::vector<std::string> said;
  for (int rank = 0; rank < options.size; ++rank) {
    absl::StatusOr<std::string> theirs = store.Wait(key(rank), deadline);
    RETURN_IF_ERROR(theirs.status()) << "rank " << rank << " did not join group " << options.group;
    if (absl::StartsWith(*theirs, kError)) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, ": ", theirs->substr(sizeof(kError) - 1)));
    }
    said.push_back(*std::move(theirs));
  }
  return said;
}

absl::StatusOr<std::string> StartAndFindPlace(const MpiLibrary& mpi) {
  RETURN_IF_ERROR(StartMpi(mpi));
  MpiPlace place;
  RETURN_IF_ERROR(MpiResult(mpi, mpi.Comm_rank(mpi.world, &place.rank), "ask for the rank"));
  RETURN_IF_ERROR(MpiResult(mpi, mpi.Comm_size(mpi.world, &place.size), "ask for the size"));
  return EncodeMpiPlace(place);
}

// A communicator of the group's ranks alone. Its tag keeps groups apart that form at one time.
absl::StatusOr<MpiComm> MakeGroup(const MpiLibrary& mpi, const CommOptions& options,
                                  const std::vector<MpiPlace>& places) {
  constexpr size_t kTags = 32768;  // those that every MPI has
  std::vector<int> ranks;
  for (const MpiPlace& place : places) ranks.push_back(place.rank);
  MpiGroup world = nullptr;
  MpiGroup members = nullptr;
  MpiComm made = nullptr;
  RETURN_IF_ERROR(MpiResult(mpi, mpi.Comm_group(mpi.world, &world), "list the world"));
  RETURN_IF_ERROR(
      MpiResult(mpi, mpi.Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &members),
                "list the group"));
  const int tag = static_cast<int>(Fnv1a(options.group) % kTags);
  RETURN_IF_ERROR(
      MpiResult(mpi, mpi.Comm_create_group(mpi.world, members, tag, &made), "make a communicator"));
  RETURN_IF_ERROR(
      MpiResult(mpi, mpi.Comm_set_errhandler(made, mpi.errors_return), "have errors returned"));
  mpi.Group_free(&members);
  mpi.Group_free(&world);
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> ConnectMpi(const CommOptions& options, Store& store,
                                                      absl::Time deadline,
                                                      const std::string& library) {
  const absl::StatusOr<MpiLibrary> mpi = LoadMpi(library);
  // Inside MPI_Init nobody can be told any more, so first make sure that all will come there.
  RETURN_IF_ERROR(Gather(options, store, "loaded",
                         mpi.ok() ? absl::StatusOr<std::string>(mpi->version) : mpi.status(),
                         deadline)
                      .status());
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   Gather(options, store, "place", StartAndFindPlace(*mpi), deadline));
  std::vector<MpiPlace> places;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const MpiPlace place, DecodeMpiPlace(text));
    places.push_back(place);
  }
  RETURN_IF_ERROR(CheckMpiPlaces(options, places));
  ASSIGN_OR_RETURN(const MpiComm comm, MakeGroup(*mpi, options, places));
  return std::make_unique<MpiTransport>(*mpi, comm, options.rank, options.size);
}

}  // namespace plinth::comm
