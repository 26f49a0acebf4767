#include "plinth/storage/io/checksum.h"

#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "plinth/hardware/base/check.h"

namespace plinth::storage {

struct StreamingChecksum::State {
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3{XXH3_createState()};
};

uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
uint64_t Checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string ChecksumText(uint64_t checksum) { return absl::StrFormat("%016x", checksum); }

StreamingChecksum::StreamingChecksum() : state_(std::make_unique<State>()) {
  CHECK(state_->xxh3 != nullptr) << "out of memory";
  CHECK_EQ(XXH3_64bits_reset(state_->xxh3.get()), XXH_OK);
}
StreamingChecksum::~StreamingChecksum() = default;
StreamingChecksum::StreamingChecksum(StreamingChecksum&&) noexcept = default;
StreamingChecksum& StreamingChecksum::operator=(StreamingChecksum&&) noexcept = default;

void StreamingChecksum::Update(std::span<const std::byte> bytes) {
  CHECK_EQ(XXH3_64bits_update(state_->xxh3.get(), bytes.data(), bytes.size()), XXH_OK);
}

uint64_t StreamingChecksum::Value() const { return XXH3_64bits_digest(state_->xxh3.get()); }

}  // namespace plinth::storage
