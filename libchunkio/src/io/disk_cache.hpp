/// Bytes of remote files that are kept in a folder of a local disk: for the next epoch, for other
/// processes of the same user, for the next run.
///
/// Each version of an object has a file of its own. Its bytes lie there at their own offsets, and
/// are holes where they are not kept; behind them lies a digest of each piece of 4 KiB, 0 where the
/// piece is not kept. A digest is written after its piece, and compared whenever the piece is read:
/// nothing has to reach the disk in time, a crash leaves nothing half-written, and processes that
/// keep the same piece write the same bytes.
///
/// Objects that no process has open make room for others, the one that was opened or added to
/// longest ago first. What is in use stays: an epoch visits everything once, in another order each
/// time, so that of a dataset twice as large as the cache half is found again, while a cache that
/// gave up what was used longest ago would find 15 %.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/positional_io.hpp"

namespace chunkio::io {

/// The folder, shared by the objects of this process. Thread-safe.
class CacheFolder {
 public:
  /// Makes the folder if it is not there. \throws Error io_failed.
  [[nodiscard]] static std::shared_ptr<CacheFolder> shared(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Opens the file of an object, which nobody removes until it is closed.
  /// \param bytes  that it has, holes included. \throws Error io_failed.
  [[nodiscard]] base::FileDescriptor open(const std::string& name, std::int64_t bytes);
  /// Makes room for so many bytes more. \param most  that all objects may take together, give or
  /// take what other processes add within a second. \returns false if there is no room.
  [[nodiscard]] bool take(std::int64_t bytes, std::int64_t most) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  explicit CacheFolder(std::string path) : path_(std::move(path)) {}
  // With the mutex held.
  /// Finds out what the objects take, and what the disk has left.
  void look();
  void remove_unused(std::int64_t bytes, std::int64_t most);
  [[nodiscard]] std::int64_t room(std::int64_t most) const noexcept;

  const std::string path_;
  std::mutex mutex_;
  std::int64_t used_bytes_ = 0;
  std::int64_t free_bytes_ = 0;  // of the disk, without what is left to others
  Clock::time_point looked_ = {};
  Clock::time_point removed_ = {};
};

/// What is kept of one object. Thread-safe. What goes wrong with the disk makes nothing fail: then
/// bytes are not there, or not kept.
class DiskCache {
 public:
  static constexpr std::int64_t kPieceBytes = 4096;

  /// \param most_bytes  that the folder may take. \param object  which version of which object, as
  ///                    a text. \throws Error io_failed.
  DiskCache(const std::string& folder, std::int64_t most_bytes, std::string_view object,
            std::int64_t object_bytes);

  // Ranges begin at a multiple of kPieceBytes, and end at one or at the end of the object.

  /// Reads what is there. \returns how many bytes of `out` that are, from its first on.
  [[nodiscard]] std::size_t read(std::int64_t offset, std::span<std::byte> out) const noexcept;
  /// \pre read() does not read the byte at `offset`. \returns how many of `bytes`, from there on,
  /// are not there.
  [[nodiscard]] std::size_t missing(std::int64_t offset, std::size_t bytes) const noexcept;
  /// Whether read() would read all of them, unless they do not match.
  [[nodiscard]] bool holds(std::int64_t offset, std::size_t bytes) const noexcept;
  /// Keeps them if there is room.
  void keep(std::int64_t offset, std::span<const std::byte> bytes) noexcept;

 private:
  [[nodiscard]] std::int64_t digest_offset(std::int64_t offset) const noexcept;
  /// Of the pieces from `offset` on. \returns false if they cannot be read.
  [[nodiscard]] bool read_digests(std::int64_t offset,
                                  std::span<std::uint64_t> digests) const noexcept;
  void write_digests(std::int64_t offset, std::span<const std::uint64_t> digests) const noexcept;

  std::shared_ptr<CacheFolder> folder_;
  std::int64_t most_bytes_;
  std::int64_t object_bytes_;
  base::FileDescriptor file_;
};

}  // namespace chunkio::io
