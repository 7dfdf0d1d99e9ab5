/// A byte source as a slower disk would serve it (LoaderOptions::disk_limit).
///
/// Every read is charged to a DiskLimiter as if its bytes came from there, whatever is in the page
/// cache, and waits until they would be there. What is prefetched is asked for at once, as the
/// kernel's read-ahead does, so that a queue of requests is under way ahead of the reads. Never
/// faster than the disk there is: its own time comes on top, unless it passes while the limit is
/// waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "io/disk_limiter.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::io {

class SimulatedDisk final : public WrappingSource {
 public:
  /// \param disk        shared by all that lies there.
  /// \param offset      where the source begins on it, so that no two lie at the same place.
  /// \param reads_ahead the source reads what is prefetched.
  SimulatedDisk(std::shared_ptr<const ByteSource> source, std::shared_ptr<DiskLimiter> disk,
                std::int64_t offset, bool reads_ahead)
      : WrappingSource(std::move(source)),
        disk_(std::move(disk)),
        offset_(offset),
        reads_ahead_(reads_ahead) {}

  /// Counts the wait as ReadTime::waited_seconds.
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;
  /// A run of bytes is one request to a disk, however it is copied.
  [[nodiscard]] std::int64_t request_bytes() const noexcept override;

 private:
  class Prefetched;
  ReadTime wait(DiskLimiter::Clock::time_point time, const std::stop_token& stop) const;

  std::shared_ptr<DiskLimiter> disk_;
  std::int64_t offset_;
  bool reads_ahead_;
};

}  // namespace chunkio::io
