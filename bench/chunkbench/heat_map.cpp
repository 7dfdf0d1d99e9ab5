#include "chunkbench/heat_map.hpp"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "chunkbench/number_format.hpp"

namespace bench {
namespace {

using ChunkShape = std::pair<std::int64_t, std::int64_t>;  // bytes, samples

ChunkShape chunk_of(const Cell& cell) { return {cell.chunk_bytes, cell.chunk_samples}; }

void add_cell(Markup& html, std::size_t index, const HeatCell& cell, const ValueColours& colours) {
  if (cell.value) {
    const Colour colour = colours.of(*cell.value);
    html.open("td", {{"class", cell.marks},
                     {"data-i", std::to_string(index)},
                     {"data-v", nlohmann::json(*cell.value).dump()},
                     {"style", "background:" + colour.hex() + ";color:" + ink_on(colour).hex()},
                     {"title", cell.hover}});
  } else {
    html.open("td", {{"class", cell.marks + " hatched"},
                     {"data-i", std::to_string(index)},
                     {"title", cell.hover}});
  }
  html.text(cell.text);
  if (!cell.second.empty()) html.leaf("small", cell.second);
  html.close();
}

}  // namespace

Markup draw_heat_map(const Results& results, const CellGroup& group, const std::string& label,
                     const ValueColours& colours,
                     const std::function<HeatCell(std::size_t)>& show) {
  std::set<ChunkShape> chunks;
  std::set<std::int64_t> caches;
  for (const Cell& cell : results.cells) {
    chunks.insert(chunk_of(cell));
    caches.insert(cell.cache_bytes);
  }
  std::map<std::pair<std::int64_t, ChunkShape>, std::size_t> cells;
  for (const std::size_t i : group.cells) {
    cells[{results.cells[i].cache_bytes, chunk_of(results.cells[i])}] = i;
  }
  Markup html;
  html.open("table", {{"class", "heat"}, {"aria-label", label}}).open("thead").open("tr");
  html.leaf("th", {{"colspan", "2"}}, cache_word(group.source)).close().close().open("tbody");
  for (auto cache = caches.rbegin(); cache != caches.rend(); ++cache) {
    html.open("tr").leaf("th", {{"scope", "row"}}, size_text(*cache));
    for (const ChunkShape& chunk : chunks) {
      const auto found = cells.find({*cache, chunk});
      if (found != cells.end()) {
        add_cell(html, found->second, show(found->second), colours);
      } else {
        html.leaf("td", {{"class", "absent"}}, "");
      }
    }
    html.close();
  }
  html.close().open("tfoot").open("tr").leaf("th", "");
  for (const ChunkShape& chunk : chunks) {
    html.leaf("th", {{"scope", "col"}}, size_text(chunk.first));
  }
  html.close().open("tr").leaf("th", "");
  html.leaf("th", {{"colspan", std::to_string(chunks.size())}}, "chunk size");
  html.close().close().close();
  return html;
}

Markup draw_colour_legend(const ValueColours& colours, const std::string& title,
                          const std::function<std::string(double)>& text) {
  constexpr int kStops = 16;
  std::string gradient = "background:linear-gradient(to right";
  for (int i = 0; i <= kStops; ++i) {
    gradient += "," + colours.at(static_cast<double>(i) / kStops).hex();
  }
  Markup html;
  html.open("p", {{"class", "legend"}}).text(title + " " + text(colours.lowest()) + " ");
  html.leaf("i", {{"style", gradient + ")"}}, "").text(" " + text(colours.highest())).close();
  return html;
}

}  // namespace bench
