#include "structure_check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "field_blocks.hpp"
#include "label_blocks.hpp"
#include "recorded_source.hpp"
#include "stop_signal.hpp"

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
  StopSignal::check();
  attempt(problems, [&] { check_source_rows(dataset, problems); });
  if (!info.options_json.empty() && !nlohmann::json::accept(info.options_json)) {
    problems.emplace_back("the attribute options is no JSON");
  }
  return problems;
}

Problems unreadable_fields(const chunkio::Dataset& dataset) {
  Problems problems;
  const auto read = [&](const chunkio::FieldInfo& field) {
    attempt(problems, [&] {
      for_each_field_block(dataset, field, {0, dataset.size()},
                           [](std::int64_t, std::span<const std::byte>) { StopSignal::check(); });
    });
  };
  if (dataset.info().labels) read(*dataset.info().labels);
  for (const chunkio::FieldInfo& field : dataset.info().fields) read(field);
  return problems;
}

}  // namespace h5pack
