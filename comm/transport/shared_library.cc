#include "plinth/comm/transport/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace plinth::comm {

absl::Status SharedLibrary::Load(const std::string& name, bool global) {
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_NODELETE | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle_ != nullptr) return absl::OkStatus();
  const char* reason = dlerror();
  return absl::UnavailableError(absl::StrCat("cannot load ", name, " (",
                                             reason == nullptr ? "no reason given" : reason, ")"));
}

void* SharedLibrary::Look(const char* symbol) {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr && missing_.empty()) missing_ = symbol;
  return found;
}

}  // namespace plinth::comm
