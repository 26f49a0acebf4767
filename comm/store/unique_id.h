// Names that no other launch on any host has.
#ifndef PLINTH_COMM_STORE_UNIQUE_ID_H_
#define PLINTH_COMM_STORE_UNIQUE_ID_H_

#include <cstddef>
#include <string>

namespace plinth::comm {

inline constexpr size_t kUniqueIdCharacters = 32;

// 128 random bits of the kernel as lower-case hexadecimal.
std::string MakeUniqueId();

}  // namespace plinth::comm

#endif  // PLINTH_COMM_STORE_UNIQUE_ID_H_
