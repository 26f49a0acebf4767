// Turns a failed system call into a Status that says what, where and why.
#ifndef PLINTH_STORAGE_IO_ERRNO_STATUS_H_
#define PLINTH_STORAGE_IO_ERRNO_STATUS_H_

#include <string_view>

#include "absl/status/status.h"

namespace plinth::storage {

// "<path>: <operation>: <text of errno>", for example
// "/data/a.bin: open for reading: No such file or directory".
// Codes: ENOENT -> kNotFound, EEXIST and ENOTEMPTY -> kAlreadyExists, EACCES/EPERM/EROFS ->
// kPermissionDenied, ENOSPC/EDQUOT/EFBIG/EMFILE/ENOMEM -> kResourceExhausted, EIO ->
// kDataLoss, the rest as Abseil maps them. Requires `error` != 0.
absl::Status ErrnoStatus(int error, std::string_view path, std::string_view operation);

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_ERRNO_STATUS_H_
