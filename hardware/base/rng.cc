#include "plinth/hardware/base/rng.h"

#include <cmath>
#include <numbers>

#include "plinth/hardware/base/hash.h"

namespace plinth {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

std::array<uint32_t, 4> Block(uint64_t key, uint64_t stream, uint64_t index) {
  return Philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}

double Unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t p1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t RngKey(uint64_t seed, std::string_view purpose) {
  return RandomBits(seed, Fnv1a(purpose), 0);  // mixes both
}

uint64_t RandomBits(uint64_t key, uint64_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = Block(key, stream, index);
  return (uint64_t{words[0]} << 32) | words[1];
}

double RandomUniform(uint64_t key, uint64_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = Block(key, stream, index);
  return Unit(words[0], words[1]);
}

double RandomNormal(uint64_t key, uint64_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = Block(key, stream, index);
  const double u = 1.0 - Unit(words[0], words[1]);  // in (0, 1]: the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * Unit(words[2], words[3]);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

}  // namespace plinth
