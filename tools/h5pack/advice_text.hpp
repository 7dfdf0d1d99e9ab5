/// What the library advises, in terms of this program.
#pragma once

#include <string>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// The library speaks of its own options; whoever reads this needs those of the program, too:
/// "num_threads" becomes "num_threads (--threads)". Pure; thread-safe.
[[nodiscard]] std::string with_program_options(std::string advice);

/// "none", and why, if a dataset looks like labels. Pure; thread-safe. \pre no labels.
[[nodiscard]] std::string no_labels_text(const chunkio::DatasetInfo& info);

}  // namespace h5pack
