/// The figures of the report, each with its heading and what is needed to read it. A section of
/// which the results have nothing is empty.
///
/// Pure functions; thread-safe.
#pragma once

#include "markup.hpp"
#include "results.hpp"

namespace bench {

/// Images/s over chunk and cache size: a heat map for each order, source and number of threads.
[[nodiscard]] Markup speed_section(const Results& results);
/// What the best cells read each second, against what the machine gives.
[[nodiscard]] Markup ceiling_section(const Results& results);
/// Hit rates, predicted and measured.
[[nodiscard]] Markup hit_rate_section(const Results& results);
/// Bytes read / bytes delivered, predicted and measured.
[[nodiscard]] Markup amplification_section(const Results& results);
/// Whether the model was right.
[[nodiscard]] Markup model_section(const Results& results);
/// What a larger window buys.
[[nodiscard]] Markup shuffle_section(const Results& results);
/// What the workers do in the best cells.
[[nodiscard]] Markup stage_section(const Results& results);
/// The ladder from one file an image to the best way.
[[nodiscard]] Markup story_section(const Results& results);

}  // namespace bench
