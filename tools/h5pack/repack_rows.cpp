#include "repack_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <chunkio/error.hpp>

#include "in_quotes.hpp"
#include "label_blocks.hpp"
#include "pack_order.hpp"
#include "recorded_source.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Rows = std::vector<std::int64_t>;

/// One label a row.
Rows class_labels(const chunkio::Dataset& dataset, const std::string& option) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels || info.labels->dtype != chunkio::DType::int64) {
    throw Error(ErrorCode::invalid_argument,
                option + " needs class labels, and " + in_quotes(info.path) +
                    (info.labels ? " has a table of attributes" : " has no labels") +
                    "; leave it out, or name the labels with --label-field" +
                    (info.why_no_labels.empty() ? "" : ". " + escape(info.why_no_labels)));
  }
  Rows labels;
  labels.reserve(static_cast<std::size_t>(info.num_samples));
  for_each_label_block(dataset, [&](const LabelBlock& block) {
    labels.insert(labels.end(), block.classes.begin(), block.classes.end());
  });
  return labels;
}

Rows chosen_rows(const chunkio::Dataset& dataset, const RepackSelection& selection) {
  Rows rows;
  if (selection.rows) {
    for (const chunkio::RowRange& range : selection.rows->ranges()) {
      if (range.end > dataset.size()) {
        throw Error(ErrorCode::invalid_argument, "--rows: " + in_quotes(dataset.info().path) +
                                                     " has " + std::to_string(dataset.size()) +
                                                     " rows, so none has number " +
                                                     std::to_string(range.end - 1));
      }
      for (std::int64_t row = range.begin; row < range.end; ++row) rows.push_back(row);
    }
  } else {
    rows = source_order(dataset.size());
  }
  if (selection.labels.empty()) return rows;
  const Rows labels = class_labels(dataset, "--labels");
  const std::set<std::int64_t> wanted(selection.labels.begin(), selection.labels.end());
  std::erase_if(rows, [&](std::int64_t row) {
    return !wanted.contains(labels[static_cast<std::size_t>(row)]);
  });
  return rows;
}

/// Deals `rows` to the parts.
void deal(const Rows& rows, const RepackSelection& selection, std::vector<Rows>& parts) {
  const double total = std::accumulate(selection.split.begin(), selection.split.end(), 0.0);
  const auto count = static_cast<std::int64_t>(rows.size());
  const Rows order = shuffled_order(count, selection.seed);
  double sum = 0;
  std::size_t at = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    sum += selection.split[part];
    const bool last = part + 1 == parts.size();
    const auto end =
        last ? rows.size()
             : static_cast<std::size_t>(std::llround(static_cast<double>(count) * (sum / total)));
    for (; at < end; ++at) parts[part].push_back(rows[static_cast<std::size_t>(order[at])]);
  }
}

std::vector<Rows> split_rows(const chunkio::Dataset& dataset, Rows rows,
                             const RepackSelection& selection) {
  if (selection.split.empty()) return {std::move(rows)};
  std::vector<Rows> parts(selection.split.size());
  if (selection.stratify) {
    const Rows labels = class_labels(dataset, "--stratify");
    std::map<std::int64_t, Rows> classes;
    for (const std::int64_t row : rows)
      classes[labels[static_cast<std::size_t>(row)]].push_back(row);
    for (const auto& [label, of_class] : classes) deal(of_class, selection, parts);
  } else {
    deal(rows, selection, parts);
  }
  for (Rows& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

/// \param rows  ascending.
Rows in_order(const chunkio::Dataset& dataset, Rows rows, const RepackSelection& selection) {
  if (selection.order == RepackOrder::shuffled) {
    Rows shuffled = shuffled_order(static_cast<std::int64_t>(rows.size()), selection.seed);
    for (std::int64_t& place : shuffled) place = rows[static_cast<std::size_t>(place)];
    return shuffled;
  }
  if (selection.order == RepackOrder::source) {
    const Rows sources = source_rows(dataset, {0, dataset.size()});
    if (!sources.empty()) {
      std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
        return sources[static_cast<std::size_t>(a)] < sources[static_cast<std::size_t>(b)];
      });
    }
  }
  return rows;
}

}  // namespace

std::vector<double> parse_split(const std::string& text) {
  std::vector<double> parts;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    double part = 0;
    const auto [stop, status] = std::from_chars(at, end, part);
    const bool more = stop != end && *stop == ':';
    if (status != std::errc() || !std::isfinite(part) || part <= 0 || (stop != end && !more)) break;
    parts.push_back(part);
    at = stop + 1;
    if (!more && (parts.size() == 2 || parts.size() == 3)) return parts;
    if (!more) break;
  }
  throw Error(ErrorCode::invalid_argument,
              "--split must be two or three numbers above 0, such as 0.9:0.1 (train and test) or "
              "8:1:1 (train, val and test), not " +
                  in_quotes(text));
}

std::vector<std::string> split_names(std::size_t parts) {
  return parts == 2 ? std::vector<std::string>{"train", "test"}
                    : std::vector<std::string>{"train", "val", "test"};
}

std::vector<Rows> choose_rows(const chunkio::Dataset& dataset, const RepackSelection& selection) {
  std::vector<Rows> outputs = split_rows(dataset, chosen_rows(dataset, selection), selection);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) {
      throw Error(ErrorCode::invalid_argument,
                  selection.split.empty()
                      ? "--rows and --labels leave no sample of " + in_quotes(dataset.info().path)
                      : "--split leaves no sample for " + split_names(outputs.size())[i] + ".h5");
    }
    outputs[i] = in_order(dataset, std::move(outputs[i]), selection);
  }
  return outputs;
}

}  // namespace h5pack
