#include "h5pack/dataset/structure_check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

using Problems = std::vector<std::string>;

/// Runs `check`; what it cannot read is a problem, too.
template <class Check>
void attempt(Problems& problems, const Check& check) {
  try {
    check();
  } catch (const chunkio::Error& error) {
    if (error.code() == chunkio::ErrorCode::cancelled) throw;
    problems.emplace_back(error.what());
  }
}

void check_class_counts(const chunkio::Dataset& dataset, Problems& problems) {
  const std::vector<std::int64_t>& stored = dataset.info().class_counts;
  if (stored.empty()) return;
  std::vector<std::int64_t> counted = count_labels(dataset);
  // Counted only up to the highest label there is.
  counted.resize(std::max(counted.size(), stored.size()));
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const std::int64_t said = i < stored.size() ? stored[i] : 0;
    if (counted[i] == said) continue;
    problems.push_back("class_counts says " + std::to_string(said) + " samples of class " +
                       std::to_string(i) + ", the labels have " + std::to_string(counted[i]));
    return;
  }
}

void check_source_rows(const chunkio::Dataset& dataset, Problems& problems) {
  std::vector<std::int64_t> rows = source_rows(dataset, {0, dataset.size()});
  std::sort(rows.begin(), rows.end());
  if (!rows.empty() && rows.front() < 0) {
    problems.push_back("source_index has the negative row " + std::to_string(rows.front()));
  }
  const auto twice = std::adjacent_find(rows.begin(), rows.end());
  if (twice != rows.end()) {
    problems.push_back("source_index has row " + std::to_string(*twice) + " twice");
  }
}

}  // namespace

Problems contradictions(const chunkio::Dataset& dataset) {
  Problems problems;
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.format_version) return problems;
  attempt(problems, [&] { check_class_counts(dataset, problems); });
  cli::StopSignal::check();
  // One that cannot be opened is told with the other objects.
  if (info.damaged_objects.empty()) {
    attempt(problems, [&] { check_source_rows(dataset, problems); });
  }
  if (!info.options_json.empty() && !nlohmann::json::accept(info.options_json)) {
    problems.emplace_back("the attribute options is no JSON");
  }
  return problems;
}

std::optional<std::string> unreadable_samples(const chunkio::Dataset& dataset, bool quiet) {
  constexpr std::int64_t kBlockBytes = std::int64_t{16} << 20;
  const chunkio::DatasetInfo& info = dataset.info();
  cli::Progress progress("reading " + info.path, info.has_images() ? "images" : "samples",
                         info.num_samples, quiet);
  const std::int64_t block = std::max<std::int64_t>(kBlockBytes / info.sample_bytes(), 1);
  std::vector<std::byte> rows;
  Problems problems;
  attempt(problems, [&] {
    for (std::int64_t first = 0; first < info.num_samples; first += block) {
      cli::StopSignal::check();
      const std::int64_t count = std::min(block, info.num_samples - first);
      if (info.encoded) {
        for (std::int64_t row = first; row < first + count; ++row) {
          static_cast<void>(dataset.read_encoded(row));
        }
      } else if (info.sparse) {
        static_cast<void>(dataset.read_sparse(first, count));
      } else {
        rows.resize(static_cast<std::size_t>(count * info.sample_bytes()));
        dataset.read_field(info.leading.name, first, count, rows);
      }
      progress.add(count);
    }
  });
  return problems.empty() ? std::nullopt : std::optional(std::move(problems.front()));
}

void refuse_damaged(const chunkio::DatasetInfo& info) {
  if (info.damaged_objects.empty()) return;
  throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                       info.damaged_objects.front().reason +
                           "; the file is damaged: restore it from an intact copy, or pack it "
                           "again");
}

void warn_of_damage(const chunkio::DatasetInfo& info) {
  for (const chunkio::DamagedObject& object : info.damaged_objects) {
    cli::print_warning(object.reason + "; the file is damaged, h5pack verify tells more");
  }
}

}  // namespace h5pack
