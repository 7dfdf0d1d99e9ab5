#include "chunkbench/verdict.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"
#include "cli/progress_text.hpp"

namespace bench {

Verdict verdict_of(const Results& results) {
  const Cell* const best = best_cell(results);
  if (best == nullptr) {
    return {results.cells.empty() ? "These results have no sweep."
                                  : "No cell of this sweep was measured.",
            {}};
  }
  const std::optional<Bound> bound = bound_of(results);
  const std::optional<double> share = share_of_bound(*best, bound);
  const std::int64_t equal =
      std::count_if(results.cells.begin(), results.cells.end(), [&](const Cell& cell) {
        return has_speed(cell) && &cell != best && may_be_as_fast(cell, *best) &&
               (cell.order == "sequential") == (best->order == "sequential");
      });
  const std::string others =
      plural(equal, "other cell") + " may be as fast for all this run can tell";
  return {"Chunks of " + size_text(best->chunk_bytes) + " and a " + cache_word(best->source) +
              " of " + size_text(best->cache_bytes) + ": " + rounded(median_speed(*best)) +
              " images/s" + (share ? ", " + percent_text(*share) + " of " + bound->name : "") + ".",
          "Source " + reader_text(best->source, best->threads) + ", " + order_text(best->order) +
              " order: " + spread_text(*best->images_per_second, rounded, " images/s") + "." +
              (equal > 0 ? " " + others + "." : "")};
}

std::vector<std::string> warnings_of(const Results& results) {
  std::vector<std::string> warnings;
  const auto count = [&](CellStatus status) {
    return static_cast<std::int64_t>(
        std::count_if(results.cells.begin(), results.cells.end(),
                      [status](const Cell& cell) { return cell.status == status; }));
  };
  const std::int64_t missing = count(CellStatus::pending) + count(CellStatus::measuring);
  const auto all = static_cast<std::int64_t>(results.cells.size());
  if (results.cells.empty() && !results.complete) {
    warnings.push_back(
        "This run was interrupted: what is here is of the rounds that were finished.");
  } else if (!results.complete || missing > 0) {
    warnings.push_back(
        "This sweep is not complete" +
        (missing > 0 ? ": " + cli::format_count(missing) + " of " + plural(all, "cell") +
                           " have not been measured to the end, and the best may be among them"
                     : std::string()) +
        ". 'chunkbench sweep --continue' goes on.");
  }
  if (const std::int64_t failed = count(CellStatus::failed); failed > 0) {
    warnings.push_back(plural(failed, "cell") + " failed; pointing at them says why.");
  }
  return warnings;
}

}  // namespace bench
