#include "plinth/storage/io/errno_status.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "plinth/hardware/base/check.h"

namespace plinth::storage {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case EIO:
      return absl::StatusCode::kDataLoss;
    case EFBIG:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::ErrnoToStatusCode(error);
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, std::string_view path, std::string_view operation) {
  CHECK_NE(error, 0) << path;
  std::string text(path);
  text.append(": ").append(operation).append(": ");
  text += std::generic_category().message(error);
  return absl::Status(CodeOf(error), text);
}

}  // namespace plinth::storage
