#include "chunkbench/continuation.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "cli/text_layout.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  // As JSON has it: the shortest text that reads as the same number.
  return value ? nlohmann::json(*value).dump() : "none";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (seen.insert(word).second) text += (text.empty() ? "" : ",") + word;
  }
  return text.empty() ? "none" : text;
}

/// What two runs must have in common to be one sweep, by the names a person knows it by.
std::vector<std::pair<std::string, std::string>> settings_of(const Results& results) {
  std::vector<std::string> chunks, caches, orders, sources, threads, shape;
  for (const Cell& cell : results.cells) {
    chunks.push_back(std::to_string(cell.chunk_bytes) + " B (" +
                     std::to_string(cell.chunk_samples) + " images)");
    caches.push_back(std::to_string(cell.cache_bytes) + " B");
    orders.push_back(cell.order);
    sources.push_back(cell.source);
    threads.push_back(std::to_string(cell.threads));
  }
  const std::string size = cli::joined(results.dataset.shape, "x",
                                       [](std::int64_t length) { return std::to_string(length); });
  const SweepSettings& options = results.options;
  const std::optional<ShapedDisk>& limit = options.limit;
  const auto value = [&](const char* key) {
    return results.machine.contains(key) ? results.machine.at(key).dump() : std::string("unknown");
  };
  return {{"the images are", size + " of " + results.dataset.identity},
          {"--filter", joined(results.dataset.filters)},
          {"--chunk-bytes", joined(chunks)},
          {"--cache-bytes", joined(caches)},
          {"--orders", joined(orders)},
          {"--sources", joined(sources)},
          {"--threads", joined(threads)},
          {"--cold", options.cold ? "yes" : "no"},
          {"--rounds", std::to_string(options.rounds)},
          {"--batch-size", std::to_string(options.batch_size)},
          {"--seed", std::to_string(options.seed)},
          {"--trial-images", text_of(options.images_per_trial)},
          {"--random-trial-images", text_of(options.random_images)},
          {"--trial-seconds", text_of(options.trial_seconds)},
          {"the limit of the disk",
           limit ? limit->profile + " " + text_of(limit->bytes_per_second) + " " +
                       text_of(limit->request_seconds) + " " + text_of(limit->queue_depth)
                 : "none"},
          {"--memory-limit", text_of(options.memory_limit)},
          {"--throttle-device", options.throttled_device.value_or("none")},
          {"the processor", value("cpu") + " " + value("cpus")},
          {"the file system", value("data_on")}};
}

}  // namespace

void continue_from(const Results& before, const std::string& name, Results& now) {
  const auto old = settings_of(before);
  const auto asked = settings_of(now);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (old[i].second == asked[i].second) continue;
    throw Error(ErrorCode::invalid_argument,
                cli::quote(name) + " is of another sweep: " + asked[i].first + ": there " +
                    old[i].second + ", now " + asked[i].second +
                    "; ask for the same, or choose another --output");
  }
  std::vector<Cell> cells = before.cells;
  for (Cell& cell : cells) {
    if (cell.status != CellStatus::failed) continue;
    cell.status = CellStatus::pending;
    cell.reason.clear();
  }
  now.created = before.created;
  now.cells = std::move(cells);
  now.ceilings = before.ceilings;
  now.shuffle = before.shuffle;
  now.time = before.time;
}

}  // namespace bench
