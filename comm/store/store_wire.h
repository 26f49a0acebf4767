// The bytes between a store's client and its server.
//
// Little-endian, over TCP: request = u8 op, u32 key bytes, u32 value bytes, key, value; reply =
// u8 code, u32 bytes, bytes. The first request of a connection is the hello (op 'H', key =
// magic, value = "world_size rank run_id"), by which a rank of another launch, a second rank
// with the same number and a foreign program are found out before they can do harm.
#ifndef PLINTH_COMM_STORE_STORE_WIRE_H_
#define PLINTH_COMM_STORE_STORE_WIRE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace plinth::comm {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

inline constexpr size_t kMaxStoreKeyBytes = 1024;
inline constexpr size_t kMaxStoreValueBytes = 64 * 1024;
inline constexpr std::string_view kStoreMagic = "plinth-store-1";

enum class StoreOp : uint8_t { kHello = 'H', kSet = 'S', kGet = 'G' };
// kOtherLaunch: this store is of another launch; the own one may be at another port.
enum class StoreReply : uint8_t { kOk = 0, kNotFound = 1, kRefused = 2, kOtherLaunch = 3 };
inline constexpr uint8_t kLastStoreReply = 3;

struct StoreAnswer {
  StoreReply code;
  std::string text;
};

inline constexpr size_t kRequestHeaderBytes = 9;
inline constexpr size_t kReplyHeaderBytes = 5;

inline void AppendU32(std::string& out, size_t value) {
  const uint32_t word = static_cast<uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&word), sizeof(word));
}
inline uint32_t ReadU32(const char* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

inline std::string EncodeRequest(StoreOp op, std::string_view key, std::string_view value) {
  std::string out(1, static_cast<char>(op));
  AppendU32(out, key.size());
  AppendU32(out, value.size());
  return out.append(key).append(value);
}
inline std::string EncodeReply(StoreReply code, std::string_view text) {
  std::string out(1, static_cast<char>(code));
  AppendU32(out, text.size());
  return out.append(text);
}

}  // namespace plinth::comm

#endif  // PLINTH_COMM_STORE_STORE_WIRE_H_
