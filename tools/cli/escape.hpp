/// Text of unknown origin (file names, class names, error causes) made safe to print on one line.
#pragma once

#include <string>
#include <string_view>

namespace cli {

/// Control characters and DEL as \n, \t or \xNN, a backslash as it is; bytes that are no UTF-8 as
/// \xNN. A name can thus neither break a line nor steer the terminal.
std::string escape(std::string_view text);

}  // namespace cli
