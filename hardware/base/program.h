// What every program of the workspace does first, and last: a report, or why there is none.
#ifndef PLINTH_HARDWARE_BASE_PROGRAM_H_
#define PLINTH_HARDWARE_BASE_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plinth {

// Sets what --help says before it lists the flags. Call before parsing flags.
void SetProgramHelp(std::string_view usage);

// Parses flags as absl::ParseCommandLine does and returns what is left: the program's name and
// the arguments that are no flags, all of them after "--".
//
// May end the program: --help (or -h) prints the usage and each flag of our own sources with its
// default to stdout, --helpfull the libraries' flags as well, --version the program's name, all
// with exit code 0 (Abseil's own --help exits with 1). An unknown flag or a value that does not
// fit is one line on stderr and exit code 1.
std::vector<char*> ParseFlags(int argc, char** argv);

// The same for a program that takes flags only: another argument is one line on stderr, after
// `name`, and exit code 1.
void ParseFlagsOnly(std::string_view name, int argc, char** argv);

// Says why the program fails: "<name>: <message>", one line on stderr whatever the message holds.
// Returns the exit code for it, 1.
int ReportError(std::string_view name, const absl::Status& status);

// Prints the text to stdout and returns exit code 0. An error, or a stdout that cannot be
// written, goes to ReportError.
int PrintReport(std::string_view name, const absl::StatusOr<std::string>& report);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_PROGRAM_H_
