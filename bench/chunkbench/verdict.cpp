#include "chunkbench/verdict.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"
#include "cli/progress_text.hpp"

namespace bench {
namespace {

double speed(const Cell& cell) { return cell.images_per_second->spread.median; }

const CellGroup& group_of(const std::vector<CellGroup>& groups, std::size_t cell) {
  return *std::find_if(groups.begin(), groups.end(), [cell](const CellGroup& group) {
    return std::find(group.cells.begin(), group.cells.end(), cell) != group.cells.end();
  });
}

std::string best_sentence(const Results& results, const CellGroup& group, const Cell& best) {
  const bool sequential = best.order == "sequential";
  const auto compared =
      std::count_if(results.cells.begin(), results.cells.end(), [&](const Cell& cell) {
        return has_speed(cell) && (cell.order == "sequential") == sequential;
      });
  const Spread& spread = best.images_per_second->spread;
  std::string text = "That is the best of " + plural(compared, "measured cell") +
                     (sequential ? "" : " whose order one can train with") + ": source " +
                     reader_text(best.source, best.threads) + ", " + order_text(best.order) +
                     " order, " +
                     (best.images_per_second->count == 1
                          ? "one round"
                          : rounded(spread.lowest) + " to " + rounded(spread.highest) + " in " +
                                plural(best.images_per_second->count, "round")) +
                     ".";
  if (group.as_good.empty()) return text;
  const auto others = static_cast<std::int64_t>(group.as_good.size());
  return text +
         (others == 1 ? " This run cannot tell it from another cell of its kind"
                      : " This run cannot tell it from " + cli::format_count(others) +
                            " other cells of its kind") +
         ": among them it mixes the most chunks.";
}

}  // namespace

Verdict verdict_of(const Results& results) {
  const std::optional<std::size_t> index = best_cell(results);
  if (!index) {
    return {results.cells.empty() ? "These results have no sweep."
                                  : "No cell of this sweep was measured.",
            {}};
  }
  const Cell& best = results.cells[*index];
  const std::optional<Bound> bound = bound_of(results);
  const std::optional<double> share = share_of_bound(best, bound);

  return {"Chunks of " + size_text(best.chunk_bytes) + " and a " + cache_word(best.source) +
              " of " + size_text(best.cache_bytes) + ": " + rounded(speed(best)) + " images/s" +
              (share ? ", " + percent_text(*share) + " of " + bound->name : "") + ".",
          best_sentence(results, group_of(group_cells(results), *index), best)};
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
    warnings.push_back(plural(failed, "cell") + " failed; the table of all cells says why.");
  }
  return warnings;
}

}  // namespace bench
