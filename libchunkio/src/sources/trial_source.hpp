/// The fastest of several sources that read the same array, found out while they deliver it.
///
/// Every row group is read once, by one of them; which one never changes what is delivered. Rows
/// in the page cache are a matter of copying: the ways (Trial) are the sources, each with ordinary
/// and with non-temporal stores, and what counts is the processor's time, since other threads, such
/// as the consumer's, take turns with this one.
///
/// Rows that the disk brings are read by the first source, and tell nothing about the others: what
/// they take is mostly waiting, and scatters more than the sources differ (decision 006). While
/// rows that were prefetched are read, all group reads count as such: most of their rows have just
/// come, and some are still waited for.
///
/// A source that fails where another does not is dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "base/stopwatch.hpp"
#include "sources/trial.hpp"

namespace chunkio::sources {

/// What is found out, for all files that are read by the same sources. Thread-safe.
class SourceTrials {
 public:
  /// \param kinds  the one that reads what the disk brings first.
  SourceTrials(std::vector<SourceKind> kinds, TrialLimits limits);

  [[nodiscard]] const std::vector<SourceKind>& kinds() const noexcept { return kinds_; }
  /// That reads what is in the page cache, as far as that is known.
  [[nodiscard]] SourceKind kind() const noexcept { return kinds_[trial_.choice() / kNumStores]; }
  /// What was measured, as a clause.
  [[nodiscard]] std::string describe() const { return trial_.describe(); }

 private:
  friend class TrialSource;

  /// Never again with this source.
  void drop(std::size_t source);

  static constexpr std::size_t kNumStores = 2;

  std::vector<SourceKind> kinds_;
  Trial trial_;  // way w: source w / kNumStores
  /// The first source that was not dropped: it reads what the disk brings.
  std::atomic<std::size_t> first_ = 0;
};

class TrialSource final : public ChunkSource {
 public:
  /// Whether rows of the array are in the page cache, or are being read into it. Must not throw.
  using InPageCache = std::function<bool(const RowRange& rows)>;
  /// Seconds that a processor has worked for the calling thread. Must not throw.
  using ThreadClock = std::function<double()>;

  /// \param sources  one for each of trials->kinds(); they share their scratch memory, and have the
  ///                 same bytes read ahead.
  TrialSource(std::vector<std::unique_ptr<ChunkSource>> sources,
              std::shared_ptr<SourceTrials> trials, std::int64_t row_bytes,
              InPageCache in_page_cache, ThreadClock thread_clock = base::thread_seconds);

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Whether it makes a difference, or may make one, where rows come from.
  [[nodiscard]] bool depends_on_page_cache() const noexcept;
  /// Whether the disk brings the rows of a group read, as far as that makes a difference.
  [[nodiscard]] bool come_from_disk(const RowGroup& group, std::span<const RowTarget> rows) const;
  /// After source `failed` threw `error`: places the rows with another one, or throws it again.
  ReadCost place_otherwise(std::size_t failed, const std::exception_ptr& error,
                           const RowGroup& group, std::span<const RowTarget> rows,
                           const std::stop_token& stop) const;

  std::vector<std::unique_ptr<ChunkSource>> sources_;
  std::shared_ptr<SourceTrials> trials_;
  std::int64_t row_bytes_;
  InPageCache in_page_cache_;
  ThreadClock thread_clock_;
  /// Bytes to read until what was prefetched and not in the page cache has been read.
  mutable std::atomic<std::int64_t> bytes_until_read_ = 0;
};

}  // namespace chunkio::sources
