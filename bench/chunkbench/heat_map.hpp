/// A heat map as SVG: columns, rows, and a coloured cell with its value where they meet.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "colour_scale.hpp"
#include "markup.hpp"
#include "results.hpp"

namespace bench {

struct HeatCell {
  std::size_t index = 0;  ///< In Results::cells; becomes data-i.
  std::size_t column = 0;
  std::size_t row = 0;               ///< From the bottom.
  std::optional<double> value = {};  ///< Gives the colour, and data-v; absent: hatched.
  std::string text = {};             ///< Some 8 characters.
  std::string second = {};           ///< Below it, smaller; or empty.
  std::string hover = {};
  CellStatus status = CellStatus::measured;
  bool best = false;
  bool as_good = false;  ///< Not to be told from the best.
};

struct HeatMap {
  std::string label = {};  ///< For those who cannot see it.
  std::string column_title = {};
  std::string row_title = {};
  std::vector<std::string> columns = {};
  std::vector<std::string> rows = {};  ///< From the bottom.
  std::vector<HeatCell> cells = {};
};

[[nodiscard]] Markup draw_heat_map(const HeatMap& map, const ValueColours& colours);

/// The colours with a few values. \param tick_text  what is written beside a value.
[[nodiscard]] Markup draw_colour_legend(const ValueColours& colours, const std::string& title,
                                        const std::function<std::string(double)>& tick_text);

/// The patterns that cells without a value are filled with; once in a page, before all heat maps.
[[nodiscard]] Markup hatch_patterns();

/// A swatch for the legend of marks: how a cell of this kind looks.
[[nodiscard]] Markup draw_swatch(CellStatus status, bool best, bool as_good);

}  // namespace bench
