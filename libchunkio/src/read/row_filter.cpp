#include "read/row_filter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

namespace chunkio::read {
namespace {

// Labels at a time, so that memory does not grow with the file.
constexpr std::int64_t kPiece = std::int64_t{1} << 16;

std::optional<RowSelection> rows_with_labels(const Dataset& dataset,
                                             const std::vector<std::int64_t>& labels) {
  const DatasetInfo& info = dataset.info();
  if (!info.labels || info.labels->dtype != DType::int64) {
    throw Error(ErrorCode::unsupported,
                info.path + (info.labels ? " has a table of labels" : " has no labels") +
                    ", so only_labels cannot choose samples; choose rows instead" +
                    (info.why_no_labels.empty() ? "" : ". " + info.why_no_labels),
                "only_labels", "rows");
  }
  const std::set<std::int64_t> wanted(labels.begin(), labels.end());
  std::set<std::int64_t> missing = wanted;
  std::vector<RowRange> ranges;
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(kPiece, info.num_samples)));
  for (std::int64_t first = 0; first < info.num_samples; first += kPiece) {
    const auto piece = std::span(values).first(
        static_cast<std::size_t>(std::min(kPiece, info.num_samples - first)));
    dataset.read_field(info.labels->name, first, static_cast<std::int64_t>(piece.size()),
                       std::as_writable_bytes(piece));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (!wanted.contains(piece[i])) continue;
      missing.erase(piece[i]);
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      if (!ranges.empty() && ranges.back().end == row) {
        ++ranges.back().end;
      } else {
        ranges.push_back({row, row + 1});
      }
    }
  }
  if (!missing.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "no sample of " + info.path + " has the label " + std::to_string(*missing.begin()) +
                    "; leave it out of only_labels",
                "only_labels");
  }
  return RowSelection(std::move(ranges));
}

}  // namespace

std::optional<RowSelection> filter_rows(const Dataset& dataset, const LoaderOptions& options) {
  if (options.rows && options.rows->ranges().back().end > dataset.size()) {
    throw Error(ErrorCode::invalid_argument,
                dataset.info().path + " has rows 0 to " + std::to_string(dataset.size() - 1) +
                    ", and row " + std::to_string(options.rows->ranges().back().end - 1) +
                    " was asked for; change rows",
                "rows");
  }
  if (options.only_labels.empty()) return options.rows;
  const std::optional<RowSelection> labelled = rows_with_labels(dataset, options.only_labels);
  if (!options.rows) return labelled;
  std::optional<RowSelection> both = options.rows->intersect(*labelled);
  if (!both) {
    throw Error(ErrorCode::invalid_argument,
                "none of the rows asked for has one of the labels asked for in " +
                    dataset.info().path + "; change rows or only_labels",
                "rows", "only_labels");
  }
  return both;
}

}  // namespace chunkio::read
