#include "plinth/models/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "plinth/hardware/text/utf8.h"

namespace plinth::models {
namespace {

constexpr int kLastCodePoint = 0x143;  // 0x100 + 68 - 1

constexpr bool Prints(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<uint16_t, 256> MakeCodePoints() {
  std::array<uint16_t, 256> table{};
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = static_cast<uint16_t>(Prints(byte) ? byte : next++);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kCodePoints = MakeCodePoints();

constexpr std::array<int16_t, kLastCodePoint + 1> MakeBytes() {
  std::array<int16_t, kLastCodePoint + 1> table{};
  for (int16_t& byte : table) byte = -1;
  for (int byte = 0; byte < 256; ++byte) table[kCodePoints[byte]] = static_cast<int16_t>(byte);
  return table;
}
constexpr std::array<int16_t, kLastCodePoint + 1> kBytes = MakeBytes();

}  // namespace

std::string SpellBytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) {
    const uint16_t point = kCodePoints[static_cast<uint8_t>(c)];
    if (point < 0x80) {
      spelling.push_back(static_cast<char>(point));
    } else {
      spelling.push_back(static_cast<char>(0xC0 | (point >> 6)));
      spelling.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    }
  }
  return spelling;
}

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Unit unit = NextUtf8Unit(spelling.substr(at));
    if (unit.kind != Utf8Kind::kCharacter || unit.bytes > 2) return std::nullopt;
    int point = static_cast<uint8_t>(spelling[at]);
    if (unit.bytes == 2) {
      point = ((point & 0x1F) << 6) | (static_cast<uint8_t>(spelling[at + 1]) & 0x3F);
    }
    if (point > kLastCodePoint || kBytes[point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[point]));
    at += unit.bytes;
  }
  return bytes;
}

}  // namespace plinth::models
