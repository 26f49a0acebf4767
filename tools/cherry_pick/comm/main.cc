// Sums one number over the ranks of a launch; alone, over a world of one.
#include <cstdio>
#include <span>
#include <string>

#include "plinth/comm/comm.h"

int main() {
  const auto options = plinth::comm::OptionsFromEnvironment();
  if (!options.ok()) {
    std::fprintf(stderr, "%s\n", std::string(options.status().message()).c_str());
    return 1;
  }
  const auto comm = plinth::comm::Communicator::Create(*options);
  if (!comm.ok()) {
    std::fprintf(stderr, "%s\n", std::string(comm.status().message()).c_str());
    return 1;
  }
  float sum = 1;
  const absl::Status status = (*comm)->AllReduce(plinth::comm::BufferOf(std::span<float>(&sum, 1)));
  std::printf("%g of %d ranks\n", sum, (*comm)->size());
  return status.ok() && sum == (*comm)->size() ? 0 : 1;
}
