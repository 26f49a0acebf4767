// Where the ranks of a group stand in MPI's own world, and whether that can be right.
#ifndef PLINTH_COMM_TRANSPORT_MPI_PLACES_H_
#define PLINTH_COMM_TRANSPORT_MPI_PLACES_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/rendezvous/options.h"

namespace plinth::comm {

// In MPI_COMM_WORLD.
struct MpiPlace {
  int rank = 0;
  int size = 1;
};

// The form in which ranks tell each other their places.
std::string EncodeMpiPlace(const MpiPlace& place);
absl::StatusOr<MpiPlace> DecodeMpiPlace(const std::string& text);

// `places` by rank of the group. kFailedPrecondition, with both numbers: MPI's world is smaller
// than the group (the usual cause: ranks that mpirun did not start, each alone in a world of its
// own), larger than a group that claims to be the world, or two ranks have one place.
absl::Status CheckMpiPlaces(const CommOptions& options, std::span<const MpiPlace> places);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_MPI_PLACES_H_
