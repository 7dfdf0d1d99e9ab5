/// All numbers of the results as HTML tables.
///
/// Pure functions; thread-safe.
#pragma once

#include "markup.hpp"
#include "results.hpp"

namespace bench {

[[nodiscard]] Markup cell_table(const Results& results);
[[nodiscard]] Markup shuffle_table(const Results& results);
[[nodiscard]] Markup story_table(const Results& results);

}  // namespace bench
