// Any bytes either expand into names and counts that are sane, or give an error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plinth/comm/rendezvous/node_list.h"
#include "plinth/hardware/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto nodes = plinth::comm::ExpandNodeList(text);
  if (nodes.ok()) {
    CHECK(!nodes->empty());
    CHECK_LE(nodes->size(), static_cast<size_t>(plinth::comm::kMostNodes));
    for (const std::string& node : *nodes) {
      CHECK(!node.empty());
      CHECK_EQ(node.find_first_of("[], \n"), std::string::npos);
    }
  } else {
    CHECK(!nodes.status().message().empty());
  }
  const auto counts = plinth::comm::ExpandTaskCounts(text);
  if (counts.ok()) {
    CHECK(!counts->empty());
    for (const int count : *counts) CHECK_GT(count, 0);
  }
  return 0;
}
