/// Another source, as a slower disk would serve it (LoaderOptions::disk_limit).
///
/// Every group read is charged to a DiskLimiter as if its bytes came from there, whatever
/// is in the page cache, and waits until they would be there. What is prefetched (prefetch) is
/// asked for at once, as the kernel's read-ahead does, so that a queue of requests is under way
/// ahead of the group reads; sources that do not read ahead ask when they are read, for one range
/// after the other, as they read them. Prefetching and reading may overtake each other: a group
/// read that comes before its prefetch is charged itself, and then the prefetch is not.
///
/// What is charged for are the ranges of the file that hold the wanted rows: whole chunks where
/// they are filtered, and otherwise what is read of them, which leaves out large holes
/// (end_of_close_rows) unless they were prefetched from the first to the last. A source that read
/// more (digests of whole chunks, blocks of O_DIRECT) is charged for the rest, too. Never faster
/// than the disk there is: its own time comes on top, unless it passes while the limit is waited
/// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/stored_array.hpp"
#include "io/disk_limiter.hpp"

namespace chunkio::io {

class ThrottledSource final : public ChunkSource {
 public:
  /// Prefetched group reads that are remembered; more are charged when they come.
  static constexpr std::size_t kMaxPrefetched = 4096;

  /// What a slower disk holds.
  struct OnDisk {
    std::shared_ptr<DiskLimiter> disk;  ///< Shared by all that lies there.
    /// Where the file begins on it, so that no two files lie at the same place.
    std::int64_t offset = 0;
    bool read_ahead = true;  ///< The source reads what is prefetched.
    bool raw_bytes = false;  ///< It counts bytes read after filters are undone, as libhdf5's does.
  };

  /// \param array   of `file`.
  /// \param source  reads the same array.
  ThrottledSource(std::shared_ptr<const Dataset::Impl> file,
                  std::shared_ptr<const h5::StoredArray> array, std::unique_ptr<ChunkSource> source,
                  OnDisk place);

  /// Counts the wait as ReadCost::read_seconds.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  void prefetch(const RowGroup& group, const RowRange& wanted) const noexcept override;
  void cancel_prefetch() const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Bytes that were asked for.
  struct Request {
    DiskLimiter::Clock::time_point complete;
    std::int64_t bytes = 0;
  };
  using Rows = std::pair<std::int64_t, std::int64_t>;
  /// Of the same rows.
  struct Prefetched {
    std::optional<Request> request = {};  ///< Of the next group read.
    /// Prefetches beside that, whose group reads are charged when they come; below zero: group
    /// reads that came, and were charged, before their prefetch.
    std::int64_t to_charge = 0;
    /// When the request is complete, or a group read came early.
    DiskLimiter::Clock::time_point since = {};
  };
  using Entries = std::map<Rows, Prefetched>;

  void charge_ahead(const RowRange& wanted) const noexcept;
  /// Of a prefetched group read: what was asked for when it was prefetched; absent: it is to be
  /// charged.
  [[nodiscard]] std::optional<Request> take_prefetched(const RowRange& wanted) const;
  /// Asks for all ranges at once.
  [[nodiscard]] Request submit(const RowRange& wanted) const;
  /// Asks for one range after the other, and waits for them.
  Request ask(const RowGroup& group, std::span<const RowTarget> rows, const std::stop_token& stop,
              ReadCost& cost) const;
  /// With the mutex held. \returns the end if there is no room.
  [[nodiscard]] Entries::iterator find_or_add(const RowRange& wanted) const;
  /// With the mutex held. \returns false if there is none.
  [[nodiscard]] bool make_room() const;
  void wait(DiskLimiter::Clock::time_point time, const std::stop_token& stop, ReadCost& cost) const;
  [[nodiscard]] Error stopped() const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::unique_ptr<ChunkSource> source_;
  OnDisk place_;

  // Before Library::lock() and the mutex of the limiter; guards what follows.
  mutable std::mutex mutex_;
  mutable Entries prefetched_;
  mutable DiskLimiter::Clock::time_point next_sweep_;
};

}  // namespace chunkio::io
