/// Bringing parts of files into the page cache before they are needed.
///
/// What the kernel is told of (readahead(2)) it reads into single pages of 4 KiB, and a disk
/// takes only so many of those in one request: often 1 MiB. A fault in a mapping that wants huge
/// pages (madvise(2), MADV_HUGEPAGE) reads 2 MiB into one large folio, in one request, on file
/// systems that have large folios (XFS; ext4 since Linux 6.16; Btrfs), but waits for it. So a few
/// threads do nothing but fault.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include <chunkio/byte_source.hpp>

#include "io/local_file.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::io {

/// Thread-safe. Its own threads start with the first range that has to be read, as far as the
/// kernel tells, and stop with it.
class ReadAhead {
 public:
  using File = std::shared_ptr<const LocalFile>;

  /// \param large_folios  read with threads where the kernel can; false, for files whose pages can
  ///                      vanish (on_local_file_system), to leave it all to the kernel.
  explicit ReadAhead(bool large_folios) : has_folios_(large_folios) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Starts reading bytes [begin, end) of a file and does not wait for them, unless has_pages()
  /// says that they are there or on their way already. Of a file that does not show its pages all
  /// are read. Advice: never fails.
  void start(const File& file, std::int64_t begin, std::int64_t end) noexcept;

  /// As start(), but reads large folios at once, in the calling thread.
  void fetch(const File& file, std::int64_t begin, std::int64_t end) noexcept;

 private:
  /// Part of one huge page of a file.
  struct Request {
    File file;
    std::int64_t begin = 0, end = 0;
  };

  /// \returns false if there can be no threads.
  bool enqueue(const File& file, std::int64_t begin, std::int64_t end);
  void serve(const std::stop_token& stop);
  void read(const Request& request) noexcept;

  /// Enough requests of 2 MiB to keep a disk busy (decision 009).
  static constexpr std::size_t kNumThreads = 12;
  /// 256 MiB: what is prefetched ahead of the workers, and more.
  static constexpr std::size_t kMaxRequests = 128;

  /// Cleared once the kernel was seen to read less than a folio.
  std::atomic<bool> has_folios_;
  /// A whole folio was seen to come. Looking each time would cost reads where pages are not shown.
  std::atomic<bool> saw_folio_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Request> queue_;
  std::array<std::jthread, kNumThreads> threads_;  // last: joined before anything they use is gone
};

/// A local file, read through the page cache, which is filled ahead.
class CachedFile final : public WrappingSource {
 public:
  CachedFile(const std::shared_ptr<const LocalFile>& file, std::shared_ptr<ReadAhead> read_ahead)
      : WrappingSource(file), file_(file), read_ahead_(std::move(read_ahead)) {}

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;

 private:
  std::shared_ptr<const LocalFile> file_;
  std::shared_ptr<ReadAhead> read_ahead_;
};

}  // namespace chunkio::io
