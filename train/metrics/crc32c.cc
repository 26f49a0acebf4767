#include "plinth/train/metrics/crc32c.h"

namespace plinth::train {

uint32_t Crc32c(std::string_view bytes) {
  constexpr uint32_t kReversedPolynomial = 0x82f63b78;
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kReversedPolynomial : 0);
  }
  return ~crc;
}

}  // namespace plinth::train
