// The groups of a mesh as communicators.
#ifndef PLINTH_COMM_MESH_GROUPS_H_
#define PLINTH_COMM_MESH_GROUPS_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/mesh/mesh.h"

namespace plinth::comm {

// The group of this rank along `axes` (one name, or several with commas between them), which
// messages call by that text. Ranks keep their order, so along one axis a rank of the group is a
// coordinate. Called by every rank of `world` with the same axes; errors as of Split.
// kInvalidArgument, before anything is sent: `world` has another size than the mesh, or the mesh
// no such axis.
absl::StatusOr<std::unique_ptr<Communicator>> SplitAlong(Communicator& world, const Mesh& mesh,
                                                         std::string_view axes,
                                                         const CallOptions& options = {});

}  // namespace plinth::comm

#endif  // PLINTH_COMM_MESH_GROUPS_H_
