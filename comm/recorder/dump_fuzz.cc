// Any bytes as a dump: an error or a dump within its bounds, never a crash. Checksums are mended
// first, so that damage reaches what lies behind them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "plinth/comm/recorder/dump.h"
#include "plinth/comm/recorder/layout.h"

namespace {

template <typename Block>
void Mend(std::vector<std::byte>& bytes, size_t offset) {
  if (offset + sizeof(Block) > bytes.size()) return;
  Block block;
  std::memcpy(&block, bytes.data() + offset, sizeof(block));
  block.checksum = plinth::comm::BlockChecksum(block);
  std::memcpy(bytes.data() + offset, &block, sizeof(block));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  (void)plinth::comm::ParseDump(given);
  std::vector<std::byte> mended(given.begin(), given.end());
  Mend<plinth::comm::DumpHeader>(mended, 0);
  Mend<plinth::comm::FailureRecord>(mended, plinth::comm::kFailureOffset);
  for (size_t at = plinth::comm::kDumpPrologueBytes; at < mended.size();
       at += sizeof(plinth::comm::CallRecord)) {
    Mend<plinth::comm::CallRecord>(mended, at);
  }
  (void)plinth::comm::ParseDump(mended);
  return 0;
}
