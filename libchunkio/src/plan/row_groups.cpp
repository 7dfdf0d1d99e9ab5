#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "base/checked_math.hpp"

namespace chunkio {
namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

std::int64_t length_of(const RowRange& range) noexcept { return range.end - range.begin; }

[[noreturn]] void named_twice(std::int64_t row) {
  invalid("row " + std::to_string(row) +
          " is selected twice: a selection is a set, name each row once");
}

}  // namespace

RowSelection::RowSelection(std::vector<RowRange> ranges) {
  if (ranges.empty()) invalid("a selection of no rows: name at least one");
  for (const RowRange& range : ranges) {
    if (range.begin < 0 || range.end <= range.begin) {
      invalid("rows [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
              ") are not a range: use 0 <= begin < end");
    }
  }
  const auto before = [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) {
    std::sort(ranges.begin(), ranges.end(), before);
  }
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[last].end) named_twice(ranges[i].begin);
    if (ranges[i].begin == ranges[last].end) {
      ranges[last].end = ranges[i].end;
    } else {
      ranges[++last] = ranges[i];
    }
  }
  ranges.resize(last + 1);
  ranges.shrink_to_fit();
  for (const RowRange& range : ranges) count_ += length_of(range);
  ranges_ = std::make_shared<const std::vector<RowRange>>(std::move(ranges));
}

RowSelection RowSelection::of(std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> sorted;
  if (!std::is_sorted(rows.begin(), rows.end())) {
    sorted.assign(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end());
    rows = sorted;
  }
  std::vector<RowRange> ranges;
  for (const std::int64_t row : rows) {
    if (row < 0 || row == std::numeric_limits<std::int64_t>::max()) {
      invalid("row " + std::to_string(row) + " cannot be selected: rows count from 0");
    }
    if (!ranges.empty() && row == ranges.back().end - 1) named_twice(row);
    if (!ranges.empty() && row == ranges.back().end) {
      ++ranges.back().end;
    } else {
      ranges.push_back({row, row + 1});
    }
  }
  return RowSelection(std::move(ranges));
}

std::optional<RowSelection> RowSelection::intersect(const RowSelection& other) const {
  std::vector<RowRange> common;
  auto a = ranges_->begin();
  auto b = other.ranges_->begin();
  while (a != ranges_->end() && b != other.ranges_->end()) {
    const RowRange both{std::max(a->begin, b->begin), std::min(a->end, b->end)};
    if (both.begin < both.end) common.push_back(both);
    if (a->end < b->end) {
      ++a;
    } else {
      ++b;
    }
  }
  if (common.empty()) return std::nullopt;
  return RowSelection(std::move(common));
}

/// Samples are numbered through the selected rows in ascending order.
struct RowGroups::Selection {
  explicit Selection(RowSelection selected) : rows(std::move(selected)) {}

  RowSelection rows;
  std::vector<std::int64_t> range_first_sample;  // of each range
  std::vector<std::int64_t> file_groups;  // those with selected rows, as the file numbers them
  std::vector<std::int64_t> group_first_sample;  // one more than groups

  [[nodiscard]] std::int64_t row(std::int64_t sample) const noexcept {
    const auto next =
        std::upper_bound(range_first_sample.begin(), range_first_sample.end(), sample);
    const auto range = static_cast<std::size_t>(next - range_first_sample.begin() - 1);
    return rows.ranges()[range].begin + (sample - range_first_sample[range]);
  }
};

RowGroups::RowGroups(std::int64_t group_samples, std::span<const std::int64_t> file_samples)
    : group_samples_(group_samples), file_first_row_{0}, file_first_group_{0} {
  if (group_samples < 1) {
    invalid("a row group holds at least 1 sample, got " + std::to_string(group_samples));
  }
  if (file_samples.empty()) invalid("an order needs at least one file with samples");
  std::int64_t full_rows = 0;  // as if every group were full; what SlotStarts counts with
  for (const std::int64_t samples : file_samples) {
    if (samples < 1) invalid("a file holds at least 1 sample, got " + std::to_string(samples));
    const std::int64_t file_groups = base::ceil_divide(samples, group_samples);
    const auto file_rows = base::checked_multiply(file_groups, group_samples);
    const auto sum = file_rows ? base::checked_add(full_rows, *file_rows) : std::nullopt;
    if (!sum) invalid("the files hold more samples than 63 bits count");
    full_rows = *sum;
    file_first_row_.push_back(file_first_row_.back() + samples);
    file_first_group_.push_back(file_first_group_.back() + file_groups);
    if (samples % group_samples != 0) short_groups_.push_back(file_first_group_.back() - 1);
    max_length_ = std::max(max_length_, std::min(samples, group_samples));
  }
}

RowGroups::RowGroups(std::int64_t group_samples, std::int64_t num_samples)
    : RowGroups(group_samples, std::span<const std::int64_t>(&num_samples, 1)) {}

RowGroups::RowGroups(std::int64_t group_samples, std::int64_t num_rows,
                     const RowSelection& selection)
    : RowGroups(group_samples, std::span<const std::int64_t>(&num_rows, 1), selection) {}

RowGroups::RowGroups(std::int64_t group_samples, std::span<const std::int64_t> file_rows,
                     const RowSelection& selection)
    : RowGroups(group_samples, file_rows) {
  const std::span<const RowRange> ranges = selection.ranges();
  const std::int64_t num_rows = file_first_row_.back();
  if (ranges.back().end > num_rows) {
    invalid("row " + std::to_string(std::max(ranges.back().begin, num_rows)) +
            " is selected, but there are " + std::to_string(num_rows) + " rows: use 0 to " +
            std::to_string(num_rows - 1));
  }
  if (selection.count() == num_rows) return;
  if (max_length_ > std::numeric_limits<std::uint32_t>::max()) {
    invalid("row groups of " + std::to_string(max_length_) + " rows are too long: use at most " +
            std::to_string(std::numeric_limits<std::uint32_t>::max()));
  }

  // Tables of the right size at once: they count against a memory budget.
  std::size_t num_groups = 0;
  std::int64_t last_group = -1;
  for (const RowRange& range : ranges) {
    const std::int64_t first = std::max(number_of(range.begin), last_group + 1);
    last_group = number_of(range.end - 1);
    num_groups += static_cast<std::size_t>(last_group + 1 - first);
  }
  auto kept = std::make_shared<Selection>(selection);
  kept->range_first_sample.reserve(ranges.size());
  kept->file_groups.reserve(num_groups);
  kept->group_first_sample.reserve(num_groups + 1);
  kept->group_first_sample.push_back(0);
  std::int64_t samples = 0;
  for (const RowRange& range : ranges) {
    kept->range_first_sample.push_back(samples);
    std::int64_t row = range.begin;
    for (std::int64_t group = number_of(row); row < range.end; ++group) {
      const std::int64_t end = std::min(range.end, extent_of_number(group).end);
      samples += end - row;
      row = end;
      if (kept->file_groups.empty() || kept->file_groups.back() != group) {
        kept->file_groups.push_back(group);
        kept->group_first_sample.push_back(samples);
      } else {
        kept->group_first_sample.back() = samples;
      }
    }
  }
  short_groups_.clear();
  selection_ = std::move(kept);
  max_length_ = 0;
  for (std::int64_t group = 0; group < this->num_groups(); ++group) {
    max_length_ = std::max(max_length_, length(group));
  }
}

std::int64_t RowGroups::num_samples() const noexcept {
  return selection_ ? selection_->group_first_sample.back() : file_first_row_.back();
}

std::int64_t RowGroups::num_groups() const noexcept {
  return selection_ ? std::ssize(selection_->file_groups) : file_first_group_.back();
}

std::int64_t RowGroups::length(std::int64_t group) const noexcept {
  if (selection_) {
    const auto first = selection_->group_first_sample.begin() + group;
    return first[1] - first[0];
  }
  if (!std::binary_search(short_groups_.begin(), short_groups_.end(), group)) return group_samples_;
  return length_of(extent(group));
}

RowRange RowGroups::extent(std::int64_t group) const noexcept {
  return extent_of_number(selection_ ? selection_->file_groups[static_cast<std::size_t>(group)]
                                     : group);
}

RowRange RowGroups::extent_of_number(std::int64_t group) const noexcept {
  const auto next =
      std::upper_bound(file_first_group_.begin(), std::prev(file_first_group_.end()), group);
  const auto next_file = static_cast<std::size_t>(next - file_first_group_.begin());
  const std::int64_t begin =
      file_first_row_[next_file - 1] + (group - file_first_group_[next_file - 1]) * group_samples_;
  // The group may be far longer than what is left of its file.
  return {begin, begin + std::min(group_samples_, file_first_row_[next_file] - begin)};
}

std::int64_t RowGroups::number_of(std::int64_t row) const noexcept {
  const auto next =
      std::upper_bound(file_first_row_.begin(), std::prev(file_first_row_.end()), row);
  const auto file = static_cast<std::size_t>(next - file_first_row_.begin()) - 1;
  return file_first_group_[file] + (row - file_first_row_[file]) / group_samples_;
}

std::int64_t RowGroups::row(std::int64_t group, std::int64_t sample) const noexcept {
  if (!selection_) return extent(group).begin + sample;
  return selection_->row(selection_->group_first_sample[static_cast<std::size_t>(group)] + sample);
}

void RowGroups::offsets(std::int64_t group, std::vector<std::uint32_t>& offsets) const {
  offsets.resize(static_cast<std::size_t>(length(group)));
  if (!selection_) {
    std::iota(offsets.begin(), offsets.end(), 0U);
    return;
  }
  const RowRange within = extent(group);
  const std::span<const RowRange> ranges = selection_->rows.ranges();
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [&within](const RowRange& r) { return r.end <= within.begin; });
  std::size_t filled = 0;
  for (; range != ranges.end() && range->begin < within.end; ++range) {
    const std::int64_t end = std::min(range->end, within.end);
    for (std::int64_t row = std::max(range->begin, within.begin); row < end; ++row) {
      offsets[filled++] = static_cast<std::uint32_t>(row - within.begin);
    }
  }
}

std::int64_t RowGroups::memory_bytes() const noexcept {
  if (!selection_) return 0;
  const std::size_t numbers = selection_->range_first_sample.capacity() +
                              selection_->file_groups.capacity() +
                              selection_->group_first_sample.capacity();
  return static_cast<std::int64_t>(sizeof(Selection) + selection_->rows.ranges().size_bytes() +
                                   numbers * sizeof(std::int64_t));
}

}  // namespace chunkio
