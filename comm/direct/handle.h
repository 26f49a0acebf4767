// What a rank's note says about the buffers of a call, so that all ranks choose the same way.
#ifndef PLINTH_COMM_DIRECT_HANDLE_H_
#define PLINTH_COMM_DIRECT_HANDLE_H_

#include <cstdint>
#include <type_traits>

#include "plinth/comm/transport/shared_space.h"

namespace plinth::comm {

// Plain bytes.
struct DirectHandles {
  SharedPlace in;
  SharedPlace out;
  uint64_t in_address = 0;  // in the process of the rank
  uint64_t out_address = 0;

  bool operator==(const DirectHandles&) const = default;
};
static_assert(std::is_trivially_copyable_v<DirectHandles> && sizeof(DirectHandles) == 48);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_HANDLE_H_
