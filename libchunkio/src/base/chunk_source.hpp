/// The contract between the plan, which knows where samples go, and the sources, which fetch them.
///
/// Data flow: window plan -> ChunkSource::place -> rows of ring slots. One implementation for each
/// way of reading a file; a conformance suite (tests/unit/io/source_conformance_test.cpp) runs over
/// all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "base/streaming_copy.hpp"

namespace chunkio {

/// One wanted sample and where it goes.
struct RowTarget {
  std::uint32_t row = 0;        ///< Within the row group.
  std::byte* target = nullptr;  ///< sample_bytes writable bytes.
};

/// Unwanted bytes between two wanted rows that are read anyway: that costs less than another system
/// call and a broken read-ahead, or than the 10 microseconds of another H5Dread.
inline constexpr std::int64_t kMaxGapBytes = std::int64_t{64} << 10;

/// A run of rows that is loaded together.
struct RowGroup {
  std::int64_t first_row = 0;  ///< Row in the dataset.
  std::int64_t num_rows = 0;
  std::int64_t epoch = 0;  ///< That its rows are wanted for.
  /// Of place(): what prefetch() returned for this group read, through which its bytes come; or
  /// null.
  const ByteSource* prefetched = nullptr;
  /// Of place(): how rows that are stored as they are get to their targets. Advice.
  base::Stores stores = base::Stores::streaming;

  /// Where place() reads from, of a source that reads `bytes`.
  [[nodiscard]] const ByteSource& through(const ByteSource& bytes) const noexcept {
    return prefetched != nullptr ? *prefetched : bytes;
  }
};

/// What one place() cost. The seconds are busy time of the calling thread and add up to about what
/// the call took.
struct ReadCost {
  std::int64_t bytes_read = 0;  ///< Stored bytes asked of the file (raw bytes for hdf5).
  double read_seconds = 0;      ///< Waiting for storage.
  double decode_seconds = 0;    ///< Undoing filters and checking digests.
  double copy_seconds = 0;      ///< Bringing rows to their places; copies out of the page cache.
  /// Of these, what the same rows cost no more when they are read again.
  double once_seconds = 0;

  ReadCost& operator+=(const ReadCost& other) noexcept {
    bytes_read += other.bytes_read;
    read_seconds += other.read_seconds;
    decode_seconds += other.decode_seconds;
    copy_seconds += other.copy_seconds;
    once_seconds += other.once_seconds;
    return *this;
  }
};

/// Whether one of `ranges` holds `row`.
[[nodiscard]] inline bool contains(std::span<const RowRange> ranges, std::int64_t row) noexcept {
  return std::any_of(ranges.begin(), ranges.end(), [row](const RowRange& range) {
    return range.begin <= row && row < range.end;
  });
}

/// Rows that are damaged by themselves: they do not match their digests, wanted or not, or cannot
/// be decoded. All other rows that were wanted are in their places, so that only these need be
/// skipped.
class DamagedRows : public Error {
 public:
  /// \param rows     as the source numbers them; ascending.
  /// \param reasons  one for each of `rows`; if there are none, the message holds for all.
  DamagedRows(std::vector<RowRange> rows, const std::string& message,
              ErrorCode code = ErrorCode::digest_mismatch, std::vector<std::string> reasons = {})
      : Error(code, message), rows_(std::move(rows)), reasons_(std::move(reasons)) {}
  [[nodiscard]] const std::vector<RowRange>& rows() const noexcept { return rows_; }
  /// Says why rows()[number] are damaged.
  [[nodiscard]] std::string reason(std::size_t number) const {
    return reasons_.empty() ? what() : reasons_[number];
  }

  ReadCost cost = {};  ///< Of all rows that were read for the call that throws it.

 private:
  std::vector<RowRange> rows_;
  std::vector<std::string> reasons_;
};

/// What several errors have to say: the first ones, and how many more there are.
class ErrorSummary {
 public:
  void add(const Error& error) {
    if (++count_ == 1) code_ = error.code();
    if (count_ <= kNamed) text_ += (count_ == 1 ? "" : "; ") + std::string(error.what());
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }  ///< Of the first.
  [[nodiscard]] std::string text() const {
    return count_ <= kNamed ? text_ : text_ + "; and " + std::to_string(count_ - kNamed) + " more";
  }

 private:
  static constexpr std::int64_t kNamed = 4;

  std::string text_;
  ErrorCode code_ = ErrorCode::corrupt_data;
  std::int64_t count_ = 0;
};

/// Damaged rows that are met one after the other, or in one array after the other.
class DamagedRowList {
 public:
  void add(const DamagedRows& next) {
    for (std::size_t i = 0; i < next.rows().size(); ++i) {
      rows_.push_back(next.rows()[i]);
      reasons_.push_back(next.reason(i));
    }
    summary_.add(next);
  }
  /// \throws DamagedRows if there are any.
  void raise(const ReadCost& cost) {
    if (summary_.empty()) return;
    DamagedRows all(std::move(rows_), summary_.text(), summary_.code(), std::move(reasons_));
    all.cost = cost;
    throw all;
  }

 private:
  std::vector<RowRange> rows_;
  std::vector<std::string> reasons_;
  ErrorSummary summary_;
};

/// Whether an error is about bytes in the file, so that others can be delivered all the same.
[[nodiscard]] constexpr bool concerns_stored_bytes(ErrorCode code) noexcept {
  return code == ErrorCode::io_failed || code == ErrorCode::corrupt_data ||
         code == ErrorCode::digest_mismatch || code == ErrorCode::hdf5_failed;
}

/// What is damaged of one group read, collected while the rest of it is placed.
class Damage {
 public:
  /// \param chunk_rows  rows that are stored together: if all of `group` are, an error is one of
  ///                    the whole group read.
  Damage(const RowGroup& group, std::int64_t chunk_rows) noexcept
      : group_{group.first_row, group.first_row + group.num_rows},
        chunk_rows_(chunk_rows),
        one_chunk_(group_.begin / chunk_rows == (group_.end - 1) / chunk_rows) {}

  /// The error that is being handled, of the chunk that holds `row` of the dataset, or of some of
  /// its rows. Throws it again if it is one of all of the group read.
  void add(std::int64_t row, const Error& error) {
    const auto* const damaged = dynamic_cast<const DamagedRows*>(&error);
    if (damaged == nullptr && (one_chunk_ || !concerns_stored_bytes(error.code()))) throw;
    summary_.add(error);
    if (damaged != nullptr) {
      for (const RowRange& rows : damaged->rows()) add_rows(rows);
      return;
    }
    const std::int64_t begin = row / chunk_rows_ * chunk_rows_;
    add_rows({std::max(begin, group_.begin), std::min(begin + chunk_rows_, group_.end)});
  }

  [[nodiscard]] bool any() const noexcept { return !rows_.empty(); }
  /// To be called once all other rows are placed. \throws DamagedRows if there is any damage.
  void raise(const ReadCost& cost) {
    if (rows_.empty()) return;
    sort_rows();
    DamagedRows error(std::move(rows_), summary_.text(), summary_.code());
    error.cost = cost;
    throw error;
  }

 private:
  void add_rows(const RowRange& rows) {
    if (!rows_.empty() && rows_.back().end == rows.begin) {
      rows_.back().end = rows.end;
    } else {
      rows_.push_back(rows);
    }
  }
  /// Chunks are not read in the order of their rows, and several may hold parts of the same ones.
  void sort_rows() {
    std::sort(rows_.begin(), rows_.end(),
              [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      if (rows_[i].begin <= rows_[last].end) {
        rows_[last].end = std::max(rows_[last].end, rows_[i].end);
      } else {
        rows_[++last] = rows_[i];
      }
    }
    rows_.resize(last + 1);
  }

  RowRange group_;
  std::int64_t chunk_rows_;
  bool one_chunk_;
  std::vector<RowRange> rows_;
  ErrorSummary summary_;
};

/// Brings the rows of one row group to their places in batch buffers.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  /// Writes each wanted row of `group` to its target, once. May be called concurrently.
  ///
  /// \param group  lies inside the dataset.
  /// \param rows   ascending by row, targets disjoint; a row may be wanted more than once.
  /// \throws Error io_failed (with errno), corrupt_data (the file ends early, or a filter fails),
  ///         hdf5_failed, cancelled (`stop` requested); targets are unspecified after such a throw.
  ///         DamagedRows, after all other rows were placed.
  /// Blocks on storage. Ends with a store fence: the rows are visible to any thread that is told of
  /// the return.
  virtual ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                         std::stop_token stop) const = 0;

  /// Says that rows of `group` will be placed soon, so that their bytes can be on their way from
  /// storage.
  /// \param wanted  rows of the dataset, within `group`, from the first to the last wanted one.
  /// \returns what one place() is to be given (RowGroup::prefetched), or null. This outlives it.
  /// Advice: never fails, may do nothing, blocks no longer than it takes to queue the requests. May
  /// be called concurrently.
  [[nodiscard]] virtual std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept {
    static_cast<void>(group);
    static_cast<void>(wanted);
    return nullptr;
  }

  /// Bytes this source allocates for `threads` concurrent callers; part of the memory budget.
  [[nodiscard]] virtual std::int64_t memory_bytes(std::int64_t threads) const noexcept = 0;
};

/// Of sources that share what they take for callers, each of which uses one at a time.
[[nodiscard]] inline std::int64_t memory_bytes(
    std::span<const std::unique_ptr<ChunkSource>> sources, std::int64_t threads) noexcept {
  std::int64_t own = 0;
  std::int64_t shared = 0;
  for (const auto& source : sources) {
    const std::int64_t without_callers = source->memory_bytes(0);
    own += without_callers;
    shared = std::max(shared, source->memory_bytes(threads) - without_callers);
  }
  return own + shared;
}

}  // namespace chunkio
