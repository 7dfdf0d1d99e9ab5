#include "verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "quantity.hpp"
#include "ranking.hpp"

namespace bench {
namespace {

/// From here on a bound counts as reached.
constexpr double kNearlyAll = 0.85;

double speed(const Cell& cell) { return cell.images_per_second->spread.median; }

std::string of_that(const Cell& cell, const Cell& best) {
  return share_text(speed(cell) / speed(best)) + " of that";
}

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
                      : " This run cannot tell it from " + count_text(others) +
                            " other cells of its kind") +
         ": among them it mixes the most chunks.";
}

/// How the smallest and the largest of the other values of one setting do, everything else alike.
template <class Setting, class SameRest>
std::string ends_sentence(const Results& results, const Cell& best, const Setting& setting,
                          const SameRest& same_rest, const std::string& beginning,
                          const std::string& noun) {
  const Cell* smallest = nullptr;
  const Cell* largest = nullptr;
  for (const Cell& cell : results.cells) {
    if (!has_speed(cell) || cell.order != best.order || cell.source != best.source ||
        cell.threads != best.threads || !same_rest(cell)) {
      continue;
    }
    if (setting(cell) < setting(best) && (!smallest || setting(cell) < setting(*smallest))) {
      smallest = &cell;
    }
    if (setting(cell) > setting(best) && (!largest || setting(cell) > setting(*largest))) {
      largest = &cell;
    }
  }
  if (smallest == nullptr) std::swap(smallest, largest);
  if (smallest == nullptr) return {};
  std::string text = beginning + noun + " of " + size_text(setting(*smallest)) + " gives " +
                     of_that(*smallest, best);
  if (largest != nullptr) {
    text += ", and one of " + size_text(setting(*largest)) + " " +
            share_text(speed(*largest) / speed(best));
  }
  return text + ".";
}

const Cell* best_where(const Results& results, const auto& wanted) {
  const Cell* best = nullptr;
  for (const Cell& cell : results.cells) {
    if (has_speed(cell) && wanted(cell) && (best == nullptr || speed(cell) > speed(*best))) {
      best = &cell;
    }
  }
  return best;
}

std::string order_sentence(const Results& results, const Cell& best, const std::string& order) {
  if (order == best.order) return {};
  const Cell* const other =
      best_where(results, [&](const Cell& cell) { return cell.order == order; });
  if (other == nullptr) return {};
  std::string text = "In " + order_text(order) + " order the best is " + rounded(speed(*other)) +
                     " images/s, " + of_that(*other, best) + " (" + sizes_text(*other) + ", " +
                     reader_text(other->source, other->threads) + ")";
  const std::optional<double>& amplification = other->read_amplification.measured;
  if (amplification && *amplification >= 1.5) {
    text += "; it reads " + rounded(*amplification) + " times the bytes it delivers";
  }
  return text + ".";
}

std::string h5dread_sentence(const Results& results, const Cell& best) {
  if (best.source == "h5dread") return {};
  const Cell* const other = best_where(results, [&](const Cell& cell) {
    return cell.source == "h5dread" && cell.order == best.order;
  });
  if (other == nullptr) return {};
  return "One H5Dread a sample, as h5py reads, gives " + of_that(*other, best) + " at best (" +
         sizes_text(*other) + ").";
}

std::string bound_sentence(const Cell& best, const std::optional<Bound>& bound) {
  const std::optional<double> share = share_of_bound(best, bound);
  if (share && *share >= kNearlyAll) {
    return "With that " + bound->name + " is used up: only fewer bytes an image or " +
           (bound->name == "a copy in memory" ? "a faster memory" : "a faster disk") +
           " would help.";
  }
  if (!best.stages) return {};
  const StageSeconds& stages = *best.stages;
  const std::vector<std::pair<double, const char*>> parts = {
      {stages.plan, "planning"},
      {stages.read, "reading"},
      {stages.decode, "decoding"},
      {stages.copy, "copying"},
      {stages.input_wait, "waiting for input"},
      {stages.output_wait, "waiting for free batches"}};
  double sum = 0;
  for (const auto& part : parts) sum += part.first;
  if (sum <= 0) return {};
  const auto most = std::max_element(parts.begin(), parts.end());
  return "Its workers spend most of their time " + std::string(most->second) + " (" +
         share_text(most->first / sum) + ").";
}

std::string shuffle_sentence(const Results& results) {
  for (const ShufflePoint& point : results.shuffle) {
    if (!point.chosen) continue;
    std::string text = "A window of " + size_text(point.window_bytes) + " over chunks of " +
                       size_text(point.chunk_bytes) + " gives batches";
    if (point.label_entropy) {
      text += " whose labels have " + percent_text(*point.label_entropy) +
              " of the entropy that a global shuffle gives";
    }
    if (point.same_chunk_pairs) {
      text += std::string(point.label_entropy ? ", and" : " with") + " " +
              rounded(*point.same_chunk_pairs) + " times its pairs from the same chunk";
    }
    if (point.label_entropy || point.same_chunk_pairs) return text + ".";
  }
  return {};
}

std::string model_sentence(const Results& results) {
  double largest = 0;
  std::int64_t cells = 0;
  for (const Cell& cell : results.cells) {
    if (!cell.hit_rate.predicted || !cell.hit_rate.measured) continue;
    ++cells;
    largest = std::max(largest, std::abs(*cell.hit_rate.predicted - *cell.hit_rate.measured));
  }
  if (cells == 0) return {};
  return "Predicted and measured hit rates differ by at most " + rounded(largest * 100) +
         " percentage points in " + plural(cells, "cell") + ".";
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

  Verdict verdict;
  verdict.headline = "Chunks of " + size_text(best.chunk_bytes) + " and a " +
                     cache_word(best.source) + " of " + size_text(best.cache_bytes) + ": " +
                     rounded(speed(best)) + " images/s" +
                     (share ? ", " + share_text(*share) + " of " + bound->name : "") + ".";
  const auto add = [&verdict](std::string sentence) {
    if (!sentence.empty()) verdict.sentences.push_back(std::move(sentence));
  };
  const std::vector<CellGroup> groups = group_cells(results);
  add(best_sentence(results, group_of(groups, *index), best));
  add(bound_sentence(best, bound));
  add(ends_sentence(
      results, best, [](const Cell& cell) { return cell.chunk_bytes; },
      [&](const Cell& cell) { return cell.cache_bytes == best.cache_bytes; },
      "With the same " + cache_word(best.source) + ", ", "a chunk size"));
  add(ends_sentence(
      results, best, [](const Cell& cell) { return cell.cache_bytes; },
      [&](const Cell& cell) {
        return cell.chunk_bytes == best.chunk_bytes && cell.chunk_samples == best.chunk_samples;
      },
      "With the same chunks, ", "a " + cache_word(best.source)));
  for (const char* const order : {"chunk_shuffled", "random", "sequential"}) {
    add(order_sentence(results, best, order));
  }
  add(h5dread_sentence(results, best));
  add(shuffle_sentence(results));
  add(model_sentence(results));
  return verdict;
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
        (missing > 0 ? ": " + count_text(missing) + " of " + plural(all, "cell") +
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
