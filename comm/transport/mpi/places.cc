#include "plinth/comm/transport/mpi/places.h"

#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plinth::comm {

std::string EncodeMpiPlace(const MpiPlace& place) {
  return absl::StrCat(place.rank, " ", place.size);
}

absl::StatusOr<MpiPlace> DecodeMpiPlace(const std::string& text) {
  std::istringstream in(text);
  MpiPlace place;
  in >> place.rank >> place.size;
  if (!in || place.rank < 0 || place.rank >= place.size) {
    return absl::InternalError("mpi: malformed place of a rank");
  }
  return place;
}

absl::Status CheckMpiPlaces(const CommOptions& options, std::span<const MpiPlace> places) {
  const bool is_world = options.group == CommOptions().group;
  std::vector<int> taken;  // by rank in MPI's world; -1 for none
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
    const MpiPlace& place = places[rank];
    if (place.size < options.size || (is_world && place.size != options.size)) {
      return absl::FailedPreconditionError(
          absl::StrCat("mpi: the world of MPI has size ", place.size, " for rank ", rank,
                       ", group ", options.group, " has size ", options.size,
                       ": start all ranks, and no others, with one mpirun -n ", options.size));
    }
    if (place.size != places[0].size) {
      return absl::FailedPreconditionError(
          absl::StrCat("mpi: the world of MPI has size ", place.size, " for rank ", rank, " and ",
                       places[0].size, " for rank 0: the ranks were started by several mpirun"));
    }
    taken.resize(place.size, -1);
    if (taken[place.rank] >= 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "mpi: ranks ", taken[place.rank], " and ", rank, " are both rank ", place.rank,
          " of MPI: the ranks were started by several "
          "mpirun"));
    }
    taken[place.rank] = rank;
  }
  return absl::OkStatus();
}

}  // namespace plinth::comm
