// Files of dumps: their names and directories, kept private to their owner.
#ifndef PLINTH_COMM_RECORDER_DUMP_FILE_H_
#define PLINTH_COMM_RECORDER_DUMP_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {

// "world.rank3.flight", with the run in front when there is one, and the group's id unless it is 0.
// Other characters than letters, digits, '-' and '_' are replaced, and a hash keeps names apart
// that become equal by it.
std::string DumpFileName(std::string_view run, std::string_view group, uint64_t group_id, int rank);

// Makes `directory` (mode 0700) unless it exists. Refuses one that another user owns or may write
// to: in /tmp anybody may have made it first.
absl::Status MakeDumpDirectory(const std::string& directory);

// A fresh file of `bytes` zeros beside `path` that takes that name when renamed to it: a mapping of
// the file that had the name before stays whole.
struct FreshFile {
  Fd fd;
  std::string temporary_path;
};
absl::StatusOr<FreshFile> CreateFreshFile(const std::string& path, int64_t bytes);
// Removes the temporary name on failure.
absl::Status Publish(const FreshFile& file, const std::string& path);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_RECORDER_DUMP_FILE_H_
