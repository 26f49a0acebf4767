// The two flags that every program with a config shares: --config=FILE and repeated
// --set path=value.
#ifndef PLINTH_CONFIG_LOADER_COMMAND_LINE_H_
#define PLINTH_CONFIG_LOADER_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plinth::config {

struct ConfigFlags {
  std::string config;                 // path; empty when not given
  std::vector<std::string> settings;  // "path=value", in order
};

// Takes --config=F, --config F, --set=P=V and --set P=V out of argv (absl::flags knows no
// repeated flag) and leaves the rest to ParseFlags (hardware/base/program.h). Stops at "--". A flag
// without its value, or a second --config, is kInvalidArgument.
absl::StatusOr<ConfigFlags> TakeConfigFlags(int& argc, char** argv);

// The flags again, as arguments for another program.
std::vector<std::string> ToArguments(const ConfigFlags& flags);

}  // namespace plinth::config

#endif  // PLINTH_CONFIG_LOADER_COMMAND_LINE_H_
