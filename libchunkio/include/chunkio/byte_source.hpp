/// Where the bytes of an HDF5 file come from: a local file, or whatever a program provides.
///
///     struct InMemory final : chunkio::ByteSource {
///       std::vector<std::byte> bytes;
///       std::string path = "memory:train.h5";
///       const std::string& name() const noexcept override { return path; }
///       std::int64_t size() const noexcept override { return std::ssize(bytes); }
///       std::uint64_t version() const override { return 0; }  // it never changes
///       chunkio::ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
///                                 const std::stop_token&) const override {
///         std::memcpy(out.data(), bytes.data() + offset, out.size());
///         return {};
///       }
///     };
///     const auto dataset = chunkio::Dataset::open(std::make_shared<InMemory>());
///
/// A Dataset and its Loaders share a source and keep it alive. All functions may be called by any
/// number of threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include <chunkio/export.hpp>

namespace chunkio {

/// Bytes [begin, end) of a source.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// What a read took.
struct ReadTime {
  double waited_seconds = 0;  ///< For storage.
  double copied_seconds = 0;  ///< Out of memory that already held the bytes.

  ReadTime& operator+=(const ReadTime& other) noexcept {
    waited_seconds += other.waited_seconds;
    copied_seconds += other.copied_seconds;
    return *this;
  }
};

/// Bytes by their offset. Derived classes provide the first four functions; the others are advice.
class CHUNKIO_EXPORT ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// What messages call it, as a path.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Bytes there were when it was opened.
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;
  /// Another number if the bytes may be others by now: of a time of modification or an entity tag.
  /// Asked after every read of rows, which are not delivered if it changed since the dataset was
  /// opened. \throws Error io_failed.
  [[nodiscard]] virtual std::uint64_t version() const = 0;
  /// Reads exactly out.size() bytes at `offset`. Blocks on storage.
  /// \throws Error io_failed, corrupt_data (the bytes end early), cancelled (`stop` requested; a
  ///         source that takes no longer than a disk need not ask).
  virtual ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                           const std::stop_token& stop) const = 0;

  /// Says that these ranges will be read soon, once.
  /// \returns through what one thread is to read them, or null: through this source. Given up
  ///          early, it says that they will not be read. This source outlives it, and has blocks as
  ///          large.
  /// Advice: never fails, may do nothing, blocks no longer than it takes to queue the requests.
  [[nodiscard]] virtual std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept {
    static_cast<void>(ranges);
    return nullptr;
  }
  /// How many bytes to ask for at a time where many are wanted. By default half of a common
  /// second-level cache, in which bytes should still be when rows are copied out of them.
  [[nodiscard]] virtual std::int64_t request_bytes() const noexcept {
    return std::int64_t{512} << 10;
  }
  /// Reads that begin and end at multiples of this, in memory aligned to it, cost least; others
  /// may cost more. A power of two, at most 4096.
  [[nodiscard]] virtual std::int64_t block_bytes() const noexcept { return 1; }
};

}  // namespace chunkio
