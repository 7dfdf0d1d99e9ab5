/// A file in an object store, or on a web server.
///
/// Its bytes come by HTTP ranges. A request that fails is tried again, and goes on behind the bytes
/// that came. What is small is read through blocks that are kept, since metadata is read a few
/// bytes at a time. BlocksAhead keeps many requests under way. A DiskCache keeps what came, if one
/// is asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/dataset.hpp>

#include "io/disk_cache.hpp"
#include "io/http_client.hpp"
#include "io/object_address.hpp"

namespace chunkio::io {

class RemoteFile final : public ByteSource {
 public:
  /// Bytes of a request where many are wanted: at 90 MB/s a connection, as long as the wait for the
  /// first byte is, some 20 ms.
  static constexpr std::int64_t kRequestBytes = std::int64_t{2} << 20;

  /// Asks for its first bytes.
  /// \throws Error not_found, io_failed (it cannot be read, and why), invalid_argument (no
  ///         address), unsupported (the server sends no ranges; this library has no libcurl).
  RemoteFile(const std::string& address, const RemoteOptions& options);

  [[nodiscard]] const std::string& name() const noexcept override { return object_.name; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  /// Of its entity tag, or of the time of its modification. \throws nothing: each reply says it.
  [[nodiscard]] std::uint64_t version() const override;
  /// \throws Error io_failed (after RemoteOptions::timeout_seconds without a byte), corrupt_data
  ///         (it is another object by now), cancelled.
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
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

 private:
  friend class Distrust;

  [[nodiscard]] HttpReply ask(std::int64_t begin, std::span<std::byte> out,
                              const std::stop_token& stop) const;
  void read_first_block();
  void read_blocks(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const;
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
  std::unique_ptr<DiskCache> cache_;  // or none
  mutable std::atomic<bool> changed_ = false;
  mutable std::atomic<int> distrusted_ = 0;  // how many say so
  mutable std::atomic<std::uint64_t> doubts_ = 0;
};

/// Null: it is no remote file.
[[nodiscard]] const RemoteFile* as_remote_file(const ByteSource& source) noexcept;

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
