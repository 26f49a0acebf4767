// Text from outside, for a line that people read.
#ifndef PLINTH_HARDWARE_BASE_ONE_LINE_H_
#define PLINTH_HARDWARE_BASE_ONE_LINE_H_

#include <string>
#include <string_view>

namespace plinth {

// `text` with its control characters, tabs excepted, as "\n", "\r" or "\x1b". What a file or a
// peer calls its parts then neither breaks the line nor moves the cursor. Other bytes stay.
// Threads: a pure function.
std::string OneLine(std::string_view text);

}  // namespace plinth

#endif  // PLINTH_HARDWARE_BASE_ONE_LINE_H_
