#include "plinth/comm/transport/mem/connect.h"

#include <cstddef>
#include <cstring>

#include "plinth/comm/transport/mailbox/layout.h"
#include "plinth/comm/transport/mailbox/mailbox.h"
#include "plinth/comm/transport/mailbox/regions.h"
#include "plinth/comm/transport/private_memory.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {
namespace {

// Threads address each other's memory anyway: all of it counts as registered, in one region whose
// offsets are addresses.
class OneAddressSpace final : public Regions {
 public:
  absl::StatusOr<SharedMemory> Allocate(Transport& transport, int64_t bytes, absl::Time deadline,
                                        std::optional<PeerFailure>& failure) override {
    return AllocatePrivate(transport, bytes, deadline, failure);
  }
  SharedPlace PlaceOf(const void* data, int64_t) const override {
    return {1, reinterpret_cast<uintptr_t>(data)};
  }
  bool reads_peers() const override { return true; }
  std::optional<PeerFailure> ReadPeer(int, uint64_t address, int64_t bytes, void* to) override {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return std::nullopt;
  }
  std::byte* AddressOf(int, const SharedPlace& place) const override {
    return reinterpret_cast<std::byte*>(place.offset);
  }
};

}  // namespace

std::vector<std::unique_ptr<Transport>> ConnectMem(int size) {
  const MailboxSizes sizes = MailboxSizes::Default(size);
  const std::shared_ptr<std::byte> block = AllocatePages(sizes.TotalBytes());
  CHECK(block != nullptr) << "out of memory";
  const MailboxView view(block.get(), sizes);
  view.Format();
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) {
    ends.push_back(std::make_unique<MailboxTransport>(
        "mem", rank, view, block, [](int) { return true; }, std::make_unique<OneAddressSpace>()));
  }
  return ends;
}

}  // namespace plinth::comm
