/// What the library advises, in terms of this program.
#pragma once

#include <string>

namespace h5pack {

/// The library speaks of its own options; whoever reads this needs those of the program, too:
/// "num_threads" becomes "num_threads (--threads)". Pure; thread-safe.
[[nodiscard]] std::string with_program_options(std::string advice);

}  // namespace h5pack
