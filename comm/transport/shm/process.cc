#include "plinth/comm/transport/shm/process.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "plinth/comm/net/socket.h"

namespace plinth::comm {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot;
}

std::optional<int64_t> ProcessStartTicks(pid_t pid) {
  const Fd file(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  char text[1024];
  const ssize_t bytes = read(file.get(), text, sizeof(text));
  if (bytes <= 0) return std::nullopt;
  // "pid (name) state ..."; the name may hold anything, also brackets.
  const std::string line(text, static_cast<size_t>(bytes));
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  char state = 0;
  fields >> state;
  if (state == 'Z' || state == 'X') return std::nullopt;
  // Start time is field 22, the 19th after the state.
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  int64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

bool CopyFromProcess(pid_t pid, uint64_t address, int64_t bytes, void* to) {
  auto* target = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec local{target, static_cast<size_t>(bytes)};
    const iovec remote{reinterpret_cast<void*>(address), static_cast<size_t>(bytes)};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    // A call moves less than asked for when it is more than the kernel takes at once.
    target += got;
    address += static_cast<uint64_t>(got);
    bytes -= got;
  }
  return true;
}

}  // namespace plinth::comm
