// What one process can learn of another.
#ifndef PLINTH_COMM_TRANSPORT_SHM_PROCESS_H_
#define PLINTH_COMM_TRANSPORT_SHM_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace plinth::comm {

// Names this boot of this machine's kernel; empty when the system does not tell.
std::string BootId();

// When the process started, in clock ticks since boot: with its number, this tells it from a
// later process that got the same number. Nothing when there is no such process or it has ended
// and only waits to be reaped.
std::optional<int64_t> ProcessStartTicks(pid_t pid);

// Copies from an address of another process. False when it is gone, or may not be read, or has no
// such memory; `to` holds anything then.
bool CopyFromProcess(pid_t pid, uint64_t address, int64_t bytes, void* to);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHM_PROCESS_H_
