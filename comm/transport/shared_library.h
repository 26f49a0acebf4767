// A library of someone else's, found at run time by its file name.
#ifndef PLINTH_COMM_TRANSPORT_SHARED_LIBRARY_H_
#define PLINTH_COMM_TRANSPORT_SHARED_LIBRARY_H_

#include <string>

#include "absl/status/status.h"

namespace plinth::comm {

// Stays in the process once loaded: such libraries keep threads and memory of their own.
// Thread-compatible; copies share the library.
class SharedLibrary {
 public:
  // kUnavailable with the loader's reason. `global`: its symbols serve libraries loaded later,
  // which those with plug-ins need.
  absl::Status Load(const std::string& name, bool global = false);

  // Null when there is no such symbol; the first that was missing is remembered.
  template <typename F>
  void Find(const char* symbol, F** function) {
    *function = reinterpret_cast<F*>(Look(symbol));
  }
  void Find(const char* symbol, void** object) { *object = Look(symbol); }
  const std::string& missing() const { return missing_; }

 private:
  void* Look(const char* symbol);

  void* handle_ = nullptr;
  std::string missing_;
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TRANSPORT_SHARED_LIBRARY_H_
