#include "h5pack/pack/repack_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/quote.hpp"
#include "h5pack/pack/row_order.hpp"
#include "h5pack/sources/source_provenance.hpp"

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
                option + " needs class labels, and " + cli::quote(info.path) +
                    (info.labels ? " has a table of attributes" : " has no labels") +
                    "; leave it out, or name the labels with --label-field" +
                    (info.why_no_labels.empty() ? "" : ". " + cli::escape(info.why_no_labels)));
  }
  Rows labels;
  labels.reserve(static_cast<std::size_t>(info.num_samples));
  for_each_label_block(dataset, [&](const chunkio::LabelBlock& block) {
    labels.insert(labels.end(), block.classes.begin(), block.classes.end());
  });
  return labels;
}

Rows chosen_rows(const chunkio::Dataset& dataset, const RepackSelection& selection) {
  Rows rows;
  if (selection.rows) {
    for (const chunkio::RowRange& range : selection.rows->ranges()) {
      if (range.end > dataset.size()) {
        throw Error(ErrorCode::invalid_argument, "--rows: " + cli::quote(dataset.info().path) +
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

/// Shares that are whole but for the rounding of floating point count as whole.
constexpr double kRounding = 1e-9;

/// Rows of each part.
Rows part_sizes(std::int64_t count, const std::vector<double>& split) {
  const double total = std::accumulate(split.begin(), split.end(), 0.0);
  Rows sizes;
  double sum = 0;
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < split.size(); ++part) {
    sum += split[part];
    const bool last = part + 1 == split.size();
    // A half is rounded up, also where it comes out as a little less.
    const double exact = static_cast<double>(count) * (sum / total);
    const auto end = last ? count : static_cast<std::int64_t>(std::floor(exact + 0.5 + kRounding));
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

/// Rounds the share of each class in each part, so that both each class and each part (part_sizes()
/// of all rows) come out whole.
///
/// A class of n rows has n f in a part that takes the share f: that rounded down, and one of the
/// rows that are then left over (fewer than there are parts) or none. What a part still lacks goes
/// to the classes with the largest remainders there, ties broken by the seed. Parts have exactly
/// their sizes, and each class is at most one row away from its exact share.
class ClassShares {
 public:
  /// \param sizes  rows of each class.
  ClassShares(const Rows& sizes, const RepackSelection& selection)
      : shares_(sizes.size(), Rows(selection.split.size())),
        rests_(sizes.size(), std::vector<double>(selection.split.size())),
        left_over_(sizes),
        lacking_(part_sizes(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}),
                            selection.split)),
        ties_(shuffled_order(static_cast<std::int64_t>(sizes.size()), selection.seed)) {
    round_down(sizes, selection.split);
    fill(0);
    if (lacking_.size() == 3) fill_middle();
    for (std::size_t i = 0; i < sizes.size(); ++i) shares_[i].back() += left_over_[i];
  }

  /// Rows of class `i` in each part.
  [[nodiscard]] const Rows& of(std::size_t i) const { return shares_[i]; }

 private:
  void round_down(const Rows& sizes, const std::vector<double>& split) {
    const double total = std::accumulate(split.begin(), split.end(), 0.0);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::size_t part = 0; part < split.size(); ++part) {
        const double exact = static_cast<double>(sizes[i]) * (split[part] / total);
        const double whole = std::floor(exact + kRounding);
        shares_[i][part] = static_cast<std::int64_t>(whole);
        rests_[i][part] = exact - whole < kRounding ? 0 : exact - whole;
        left_over_[i] -= shares_[i][part];
        lacking_[part] -= shares_[i][part];
      }
    }
  }

  /// The classes, those with the largest remainder in `part` first.
  [[nodiscard]] std::vector<std::size_t> by_rest(std::size_t part) const {
    std::vector<std::size_t> order(ties_.begin(), ties_.end());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return rests_[a][part] > rests_[b][part];
    });
    return order;
  }

  void give(std::size_t i, std::size_t part, std::int64_t rows = 1) {
    shares_[i][part] += rows;
    left_over_[i] -= rows;
    lacking_[part] -= rows;
  }

  void fill(std::size_t part) {
    for (const std::size_t i : by_rest(part)) {
      if (lacking_[part] <= 0) return;
      if (left_over_[i] > 0) give(i, part);
    }
  }

  /// A class with two rows left over gives one to each of the other two parts; all others give one
  /// to either.
  void fill_middle() {
    const std::vector<std::size_t> order = by_rest(0);
    std::vector<std::size_t> with_two;
    for (const std::size_t i : order) {
      if (left_over_[i] == 2) with_two.push_back(i);
    }
    // Too many of those: one of theirs goes to the first part, which takes back another's.
    auto donor = order.rbegin();
    std::size_t moved = 0;
    const auto fits = [&] {
      return std::cmp_less_equal(with_two.size() - moved, std::min(lacking_[1], lacking_[2]));
    };
    for (; moved < with_two.size() && !fits() && donor != order.rend(); ++donor) {
      if (left_over_[*donor] != 0 || rests_[*donor][0] == 0) continue;
      if (rests_[*donor][1] + rests_[*donor][2] == 0) continue;
      give(*donor, 0, -1);
      give(with_two[moved++], 0);
    }
    for (std::size_t i = moved; i < with_two.size(); ++i) {
      for (const std::size_t part : {std::size_t{1}, std::size_t{2}}) give(with_two[i], part);
    }
    fill(1);
  }

  std::vector<Rows> shares_;                ///< [class][part]
  std::vector<std::vector<double>> rests_;  ///< Of the exact shares, when rounded down.
  Rows left_over_;                          ///< Of each class.
  Rows lacking_;                            ///< Of each part.
  Rows ties_;
};

/// Deals `rows` to the parts, `sizes` of them to each.
void deal(const Rows& rows, const Rows& sizes, std::uint64_t seed, std::vector<Rows>& parts) {
  const Rows order = shuffled_order(static_cast<std::int64_t>(rows.size()), seed);
  std::size_t at = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::int64_t i = 0; i < sizes[part]; ++i) {
      parts[part].push_back(rows[static_cast<std::size_t>(order[at++])]);
    }
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
    Rows sizes;
    for (const auto& [label, of_class] : classes) sizes.push_back(std::ssize(of_class));
    const ClassShares shares(sizes, selection);
    std::size_t i = 0;
    for (const auto& [label, of_class] : classes) {
      deal(of_class, shares.of(i), seed_of(selection.seed, i), parts);
      ++i;
    }
  } else {
    deal(rows, part_sizes(std::ssize(rows), selection.split), selection.seed, parts);
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

const char* to_string(RepackOrder order) noexcept {
  switch (order) {
    case RepackOrder::source:
      return "source";
    case RepackOrder::shuffled:
      return "shuffled";
    default:
      return "stored";
  }
}

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
                  cli::quote(text));
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
                      ? "--rows and --labels leave no sample of " + cli::quote(dataset.info().path)
                      : "--split leaves no sample for " + split_names(outputs.size())[i] + ".h5");
    }
    outputs[i] = in_order(dataset, std::move(outputs[i]), selection);
  }
  return outputs;
}

}  // namespace h5pack
