/// The entries of a source in the order in which they were read, in a temporary file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "cli/stop_signal.hpp"
#include "h5pack/sparse/entry.hpp"
#include "h5pack/sparse/spill_file.hpp"

namespace h5pack {

inline constexpr std::int64_t kEntryBytes = sizeof(Entry);
/// Entries that are moved at once: 1 MiB.
inline constexpr std::int64_t kEntryBlock = std::int64_t{1} << 16;
/// Of all tables with one number a row, the writer's included.
inline constexpr std::int64_t kBytesARow = 88;

/// "SOURCE: WHAT; raise --memory-budget".
[[nodiscard]] chunkio::Error too_small(const std::string& source, const std::string& what);

/// Tells which rows are wanted. Fast where rows come in order. Not thread-safe.
class RowFilter {
 public:
  explicit RowFilter(const std::optional<chunkio::RowSelection>& rows)
      : ranges_(rows ? rows->ranges() : std::span<const chunkio::RowRange>()) {}

  [[nodiscard]] bool takes_all() const noexcept { return ranges_.empty(); }
  [[nodiscard]] bool takes(std::int64_t row) noexcept {
    if (takes_all()) return true;
    if (row < ranges_[at_].begin || row >= ranges_[at_].end) {
      const auto after = std::upper_bound(
          ranges_.begin(), ranges_.end(), row,
          [](std::int64_t wanted, const chunkio::RowRange& range) { return wanted < range.begin; });
      if (after == ranges_.begin()) return false;
      at_ = static_cast<std::size_t>(after - ranges_.begin()) - 1;
    }
    return row >= ranges_[at_].begin && row < ranges_[at_].end;
  }

 private:
  std::span<const chunkio::RowRange> ranges_;
  std::size_t at_ = 0;
};

class EntryLog {
 public:
  /// \param output  the temporary file lies beside it. \param source  what errors call it.
  EntryLog(const std::string& output, std::string source, std::int64_t memory_budget);

  /// \throws Error no_space, io_failed; out_of_resources: there are too many rows.
  void add(std::span<const Entry> entries);
  /// Gives all entries again, in blocks. Polls StopSignal.
  template <class Take>
  void for_each_block(const Take& take) const {
    std::vector<Entry> block;
    for (std::int64_t first = 0; first < size_; first += kEntryBlock) {
      cli::StopSignal::check();
      block.resize(static_cast<std::size_t>(std::min(kEntryBlock, size_ - first)));
      file_.read(first * kEntryBytes, std::as_writable_bytes(std::span(block)));
      take(std::span<const Entry>(block));
    }
  }

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// The number of entries of each row.
  /// \param num_rows  of the source, some of them perhaps without entries behind the last.
  [[nodiscard]] std::vector<std::int64_t> take_lengths(std::int64_t num_rows);

 private:
  void grow(std::size_t num_rows);

  SpillFile file_;
  std::string source_;
  std::int64_t memory_budget_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> lengths_;
};

}  // namespace h5pack
