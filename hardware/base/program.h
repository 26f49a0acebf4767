// What every program of the workspace does first.
#ifndef PLINTH_HARDWARE_BASE_PROGRAM_H_
#define PLINTH_HARDWARE_BASE_PROGRAM_H_

#include <string_view>

namespace plinth {

// Makes --help print `usage`, then each flag of our own sources with its default (Abseil by
// itself shows only flags of a file named like the program). Call before parsing flags.
void SetProgramHelp(std::string_view usage);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_PROGRAM_H_
