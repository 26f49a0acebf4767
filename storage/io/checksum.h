// XXH3-64, the checksum of every byte that //storage keeps. It finds damage, not malice.
#ifndef PLINTH_STORAGE_IO_CHECKSUM_H_
#define PLINTH_STORAGE_IO_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plinth::storage {

uint64_t Checksum(std::span<const std::byte> bytes);
uint64_t Checksum(std::string_view bytes);

// 16 lower-case hexadecimal digits.
std::string ChecksumText(uint64_t checksum);

// The same value over bytes that arrive in pieces. Thread-compatible; movable.
class StreamingChecksum {
 public:
  StreamingChecksum();
  ~StreamingChecksum();
  StreamingChecksum(StreamingChecksum&&) noexcept;
  StreamingChecksum& operator=(StreamingChecksum&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  // Of everything so far; more may follow.
  uint64_t Value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_IO_CHECKSUM_H_
