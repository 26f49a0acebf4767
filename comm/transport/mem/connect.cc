#include "plinth/comm/transport/mem/connect.h"

#include <cstddef>
#include <cstdlib>

#include "plinth/comm/transport/mailbox.h"
#include "plinth/hardware/base/check.h"

namespace plinth::comm {

std::vector<std::unique_ptr<Transport>> ConnectMem(int size) {
  const int64_t ring_bytes = MailboxView::DefaultRingBytes(size);
  // The size is a multiple of the alignment, as every part of the block is.
  void* memory = std::aligned_alloc(64, MailboxView::TotalBytes(size, ring_bytes));
  CHECK(memory != nullptr) << "out of memory";
  const std::shared_ptr<void> block(memory, std::free);
  MailboxView view(static_cast<std::byte*>(memory), size, ring_bytes);
  view.Format();
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) {
    ends.push_back(
        std::make_unique<MailboxTransport>("mem", rank, view, block, [](int) { return true; }));
  }
  return ends;
}

}  // namespace plinth::comm
