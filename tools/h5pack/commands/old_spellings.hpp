/// Spellings of version 0.1 that still work in 0.2, with a warning. In 0.3 this file goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace h5pack {

/// A command line in today's spelling.
struct CommandLine {
  std::vector<std::string> arguments = {};  ///< Without the program's name.
  std::vector<std::string> warnings = {};   ///< One for each old spelling, a line without an end.
};

/// Replaces old names of options and of their values. Stops at "--". Pure.
/// \param arguments  of the program, without its name.
[[nodiscard]] CommandLine with_todays_spellings(std::vector<std::string> arguments);

/// `text` with today's names of the packing commands' options in place of "--color" and the like,
/// quotes included: what is recorded of a run keeps the old names, so that a run that 0.1 began can
/// be resumed. Pure.
[[nodiscard]] std::string with_todays_names(std::string text);

}  // namespace h5pack
