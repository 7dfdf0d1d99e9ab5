/// A heat map as a table: chunk sizes to the right, cache sizes upwards, and a coloured cell with
/// its value where they meet.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "chunkbench/colour_scale.hpp"
#include "chunkbench/markup.hpp"
#include "chunkbench/ranking.hpp"
#include "chunkbench/results.hpp"

namespace bench {

/// What a heat map shows of a cell of the sweep.
struct HeatCell {
  std::optional<double> value = {};  ///< Gives the colour, and data-v; absent: hatched.
  std::string text = {};
  std::string second = {};  ///< Below it, smaller; or empty.
  std::string hover = {};
  std::string marks = {};  ///< Classes of the style sheet: a status, "best", "tie".
};

/// The panel of one group; all panels of a page have the rows and columns of all cells.
/// \param label  for those who cannot see it.
/// \param show   what to show of the cell with an index in Results::cells.
[[nodiscard]] Markup draw_heat_map(const Results& results, const CellGroup& group,
                                   const std::string& label, const ValueColours& colours,
                                   const std::function<HeatCell(std::size_t)>& show);

/// The colours between the lowest and the highest value. \param text  of a value.
[[nodiscard]] Markup draw_colour_legend(const ValueColours& colours, const std::string& title,
                                        const std::function<std::string(double)>& text);

}  // namespace bench
