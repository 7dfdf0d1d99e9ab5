#include "chunkbench/cells.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/keyed_permutation.hpp"
#include "base/philox.hpp"
#include "chunkbench/trial.hpp"
#include "cli/byte_size.hpp"

namespace bench {
namespace {

using chunkio::OrderMode;
using cli::format_bytes;

/// Counts of whole trials count, equal in all of them; those of a trial that was cut only until
/// there are any.
void count_in(const std::optional<double>& counted, bool cut, std::optional<double>& kept) {
  if (counted && !(cut && kept)) kept = counted;
}

}  // namespace

std::vector<Cell> make_cells(std::span<const ChunkSize> chunks, const SweepOptions& options) {
  const bool filtered = options.filter.deflate_level > 0;
  const std::int64_t largest =
      *std::max_element(options.cache_bytes.begin(), options.cache_bytes.end());
  std::vector<Cell> cells;
  for (const ChunkSize& chunk : chunks) {
    for (const std::int64_t cache : options.cache_bytes) {
      for (const OrderMode order : options.orders) {
        for (const std::string& source : options.sources) {
          const bool one_by_one = source == "h5dread";
          const std::vector<std::int64_t> one = {1};
          for (const std::int64_t threads : one_by_one ? one : options.threads) {
            Cell cell = {.chunk_bytes = chunk.bytes,
                         .chunk_samples = chunk.samples,
                         .cache_bytes = cache,
                         .order = std::string(to_string(order)),
                         .source = source,
                         .threads = threads};
            if (filtered && (source == "mapped" || source == "scatter")) {
              cell.status = CellStatus::skipped;
              cell.reason = "this source reads no filtered chunks";
            } else if (!one_by_one && order != OrderMode::chunk_shuffled && cache != largest) {
              cell.status = CellStatus::skipped;
              cell.reason =
                  "the window does not matter in this order; as with " + format_bytes(largest);
            }
            cells.push_back(std::move(cell));
          }
        }
      }
    }
  }
  return cells;
}

bool is_open(const Cell& cell) {
  return cell.status == CellStatus::pending || cell.status == CellStatus::measuring;
}

void add_trial(const Trial& trial, Cell& cell) {
  cell.status = CellStatus::measuring;
  cell.rounds.push_back(trial.round);
  std::vector<double> images;
  std::vector<double> bytes;
  for (const Round& round : cell.rounds) {
    images.push_back(static_cast<double>(round.images) / round.seconds);
    bytes.push_back(static_cast<double>(round.bytes_read) / round.seconds);
  }
  count_in(trial.counted.chunk_loads, trial.cut, cell.chunk_loads.measured);
  count_in(trial.counted.hit_rate, trial.cut, cell.hit_rate.measured);
  count_in(trial.counted.read_amplification, trial.cut, cell.read_amplification.measured);
  const auto count = static_cast<std::int64_t>(cell.rounds.size());
  cell.images_per_second = {spread_of(images), count};
  cell.bytes_per_second = {spread_of(bytes), count};
  // The stages of the trial that is nearest to the median.
  const double median = cell.images_per_second->spread.median;
  const auto distance = [&](double rate) { return std::abs(rate - median); };
  const bool nearest = std::all_of(images.begin(), images.end(), [&](double rate) {
    return distance(images.back()) <= distance(rate);
  });
  if (trial.stages && (nearest || !cell.stages)) cell.stages = trial.stages;
}

std::vector<std::size_t> order_of_round(std::vector<std::size_t> cells, std::int64_t round,
                                        std::uint64_t seed,
                                        std::vector<std::int64_t>& times_first) {
  if (cells.empty()) return cells;
  using chunkio::base::high_word;
  using chunkio::base::low_word;
  chunkio::base::PhiloxStream stream({low_word(seed), high_word(seed)},
                                     static_cast<std::uint64_t>(round));
  chunkio::base::fisher_yates(cells.size(), stream, [&](std::uint64_t i, std::uint64_t j) {
    std::swap(cells[i], cells[j]);
  });
  const auto first = std::min_element(
      cells.begin(), cells.end(),
      [&](std::size_t a, std::size_t b) { return times_first[a] < times_first[b]; });
  std::iter_swap(cells.begin(), first);
  ++times_first[cells.front()];
  return cells;
}

}  // namespace bench
