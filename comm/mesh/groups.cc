#include "plinth/comm/mesh/groups.h"

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {

absl::StatusOr<std::unique_ptr<Communicator>> SplitAlong(Communicator& world, const Mesh& mesh,
                                                         std::string_view axes,
                                                         const CallOptions& options) {
  if (world.size() != mesh.ranks()) {
    return absl::InvalidArgumentError(absl::StrCat("mesh ", mesh.ToString(), " has ", mesh.ranks(),
                                                   " ranks, the group has ", world.size()));
  }
  ASSIGN_OR_RETURN(const int color, mesh.GroupIndex(axes, world.rank()));
  return world.Split(color, world.rank(), axes, options);
}

}  // namespace plinth::comm
