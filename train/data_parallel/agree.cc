#include "plinth/train/data_parallel/agree.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/checksum.h"

namespace plinth::train {
namespace {

// One number of every rank, by rank.
absl::StatusOr<std::vector<uint64_t>> GatherFromAll(comm::Communicator& comm, uint64_t mine) {
  std::vector<uint64_t> all(static_cast<size_t>(comm.size()));
  RETURN_IF_ERROR(comm.AllGather(comm::BufferOf(std::span<const uint64_t>(&mine, 1)),
                                 comm::BufferOf(std::span<uint64_t>(all))));
  return all;
}

}  // namespace

absl::Status AllOk(comm::Communicator& comm, const absl::Status& mine, std::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> failed, GatherFromAll(comm, mine.ok() ? 0 : 1),
                   _ << what);
  if (!mine.ok()) return mine;
  for (size_t rank = 0; rank < failed.size(); ++rank) {
    if (failed[rank] != 0) {
      return absl::AbortedError(absl::StrCat("rank ", rank, " failed: ", std::string(what)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEqualWeights(comm::Communicator& comm,
                               std::span<models::Parameter* const> parameters, Stream& stream) {
  if (comm.size() == 1) return absl::OkStatus();
  storage::StreamingChecksum checksum;
  std::vector<std::byte> bytes;
  for (const models::Parameter* parameter : parameters) {
    const TensorView view = parameter->value().view();
    bytes.resize(static_cast<size_t>(view.bytes()));
    stream.CopyOut(bytes.data(), view.data, view.bytes());
    RETURN_IF_ERROR(stream.Synchronize()) << parameter->name();
    checksum.Update(bytes);
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all, GatherFromAll(comm, checksum.Value()));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      return absl::FailedPreconditionError(
          absl::StrCat("the weights of rank ", rank, " differ from rank 0's: checksum ",
                       storage::ChecksumText(all[rank]), ", want ", storage::ChecksumText(all[0])));
    }
  }
  return absl::OkStatus();
}

}  // namespace plinth::train
