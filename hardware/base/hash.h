// A hash that is the same on every host and in every build, which std::hash does not promise.
#ifndef PLINTH_HARDWARE_BASE_HASH_H_
#define PLINTH_HARDWARE_BASE_HASH_H_

#include <cstdint>
#include <string_view>

namespace plinth {

// FNV-1a, from `hash` on: of the text before this one, or any number that tells apart.
constexpr uint64_t Fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_HASH_H_
