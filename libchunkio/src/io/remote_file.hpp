/// A file in an object store, or on a web server.
///
/// Its bytes come by HTTP ranges. A request that fails is tried again, and goes on behind the bytes
/// that came. What is small is read through blocks that are kept, since metadata is read a few
/// bytes at a time. BlocksAhead keeps many requests under way. If they are asked for, a RemoteIndex
/// has what opening the file reads, and a DiskCache keeps what came.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/dataset.hpp>

#include "io/block_cache.hpp"
#include "io/claimed_ranges.hpp"
#include "io/disk_cache.hpp"
#include "io/http_client.hpp"
#include "io/object_address.hpp"
#include "io/remote_index.hpp"
#include "io/usual_time.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::io {

class RemoteFile final : public ByteSource, public std::enable_shared_from_this<RemoteFile> {
 public:
  /// Bytes of a request where many are wanted: at 90 MB/s a connection, as long as the wait for the
  /// first byte is, some 20 ms.
  static constexpr std::int64_t kRequestBytes = std::int64_t{2} << 20;

  /// Asks for its first bytes.
  /// \throws Error not_found, io_failed (it cannot be read, and why), invalid_argument (no
  ///         address), unsupported (the server sends no ranges, or with a cache or an index file
  ///         does not tell versions apart; this library has no libcurl); as RemoteIndex::load().
  RemoteFile(const std::string& address, const RemoteOptions& options);

  [[nodiscard]] const std::string& name() const noexcept override { return object_.name; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  /// Of its entity tag, or of the time of its modification. \throws nothing: each reply says it.
  [[nodiscard]] std::uint64_t version() const override;
  /// \throws Error io_failed (after RemoteOptions::timeout_seconds without a byte), corrupt_data
  ///         (it is another object by now), cancelled.
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  /// Merges ranges that lie near each other into large requests: for metadata that is spread over
  /// a file. Takes up to 48 MiB. A loader reads its rows ahead by BlocksAhead instead.
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;
  [[nodiscard]] std::int64_t request_bytes() const noexcept override { return kRequestBytes; }
  /// Whole pieces can be kept.
  [[nodiscard]] std::int64_t block_bytes() const noexcept override {
    return cache_ ? DiskCache::kPieceBytes : 1;
  }

  /// Whether there is a Distrust.
  [[nodiscard]] bool distrusted() const noexcept { return distrusted_ > 0; }
  /// How often there was one: what was read before it may be wrong.
  [[nodiscard]] std::uint64_t doubts() const noexcept { return doubts_; }

  /// That may be under way at the same time.
  [[nodiscard]] std::int64_t num_requests() const noexcept { return options_.requests; }
  /// What an index is an index of. \throws Error unsupported if it cannot be told.
  [[nodiscard]] ObjectVersion object_version() const;

 private:
  friend class Distrust;

  /// \param in_vain  requests before it that brought nothing.
  [[nodiscard]] HttpReply ask(std::int64_t begin, std::span<std::byte> out, int in_vain,
                              const std::stop_token& stop) const;
  /// Learns the size and the validator from it. \returns null: the object is empty.
  [[nodiscard]] BlockCache::Block read_first_block();
  void read_blocks(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const;
  /// \returns false unless all of them are kept in an index or on the disk.
  [[nodiscard]] bool read_kept(std::int64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] bool is_kept(const ByteRange& range) const;
  /// The whole pieces that hold these bytes.
  [[nodiscard]] ByteRange pieces_around(std::int64_t offset, std::size_t bytes) const noexcept;
  /// Through whole pieces, where these are kept.
  void read_pieces(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const;
  /// Whole pieces, from the disk cache, else from the server, and then kept.
  void fetch(std::int64_t offset, std::span<std::byte> out, const std::stop_token& stop) const;
  void download(std::int64_t offset, std::span<std::byte> out, const std::stop_token& stop) const;
  /// \throws Error if trying again does not help.
  void refuse_what_is_final(const HttpReply& reply) const;

  ObjectAddress object_;
  RemoteOptions options_;
  std::shared_ptr<HttpClient> client_;
  std::uint64_t number_;  // among all remote files of the process
  std::int64_t size_ = 0;
  std::string validator_;
  std::optional<RemoteIndex> index_;
  std::unique_ptr<DiskCache> cache_;  // or none
  mutable ClaimedRanges claimed_;     // that are being kept in it
  mutable std::mutex time_mutex_;
  mutable UsualTime request_time_;  // under time_mutex_
  mutable std::atomic<bool> changed_ = false;
  mutable std::atomic<int> distrusted_ = 0;  // how many say so
  mutable std::atomic<std::uint64_t> doubts_ = 0;
};

/// Also of a RecordingSource. Null: it is no remote file.
[[nodiscard]] const RemoteFile* as_remote_file(const ByteSource& source) noexcept;

/// Notes what is read of a remote file in small pieces, which is what describes it. A Distrust
/// makes it forget what came before. Thread-safe.
class RecordingSource final : public WrappingSource {
 public:
  explicit RecordingSource(std::shared_ptr<const RemoteFile> file);

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;
  /// Small: what is read in large pieces is not noted.
  [[nodiscard]] std::int64_t request_bytes() const noexcept override {
    return ByteSource::request_bytes();
  }

  [[nodiscard]] const RemoteFile& file() const noexcept { return *file_; }
  /// What was noted, once.
  [[nodiscard]] std::vector<ObjectPart> take_parts();

 private:
  struct Record {
    std::mutex mutex = {};
    std::uint64_t doubts = 0;
    std::vector<ObjectPart> parts = {};
  };

  RecordingSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<const RemoteFile> file,
                  std::shared_ptr<Record> record)
      : WrappingSource(std::move(source)), file_(std::move(file)), record_(std::move(record)) {}

  std::shared_ptr<const RemoteFile> file_;
  std::shared_ptr<Record> record_;
};

/// While one lives, bytes of that file come from its server, whatever is kept of them in memory or
/// on a disk: for when those that came cannot be right.
class Distrust {
 public:
  /// \param file  outlives this.
  explicit Distrust(const RemoteFile& file);
  ~Distrust();
  Distrust(const Distrust&) = delete;
  Distrust& operator=(const Distrust&) = delete;

 private:
  const RemoteFile& file_;
};

/// Opens a file by its path or address. \throws Error as LocalFile and RemoteFile.
[[nodiscard]] std::shared_ptr<const ByteSource> open_source(const std::string& path,
                                                            const RemoteOptions& options = {});
/// Several, remote ones at the same time, which asks for each of them.
[[nodiscard]] std::vector<std::shared_ptr<const ByteSource>> open_sources(
    std::span<const std::string> paths, const RemoteOptions& options);

}  // namespace chunkio::io
