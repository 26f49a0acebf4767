#include "plinth/hardware/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace plinth::internal {

CheckFailure::CheckFailure(const char* file, int line, std::string what) {
  stream_ << file << ":" << line << ": check failed: " << what << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace plinth::internal
