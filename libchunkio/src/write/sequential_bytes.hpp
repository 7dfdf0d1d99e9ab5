/// Bytes written one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "h5/placed_bytes.hpp"

namespace chunkio::write {

/// Writes a dataset from its begin on, in blocks, and knows the digest of all of it.
class SequentialBytes {
 public:
  /// What is written, and read back, at once.
  static constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

  /// \param fd  must outlive this, as `path` must.
  SequentialBytes(int fd, const std::string& path, std::int64_t offset)
      : fd_(fd), path_(path), offset_(offset) {}

  void add(std::span<const std::byte> bytes) {
    if (block_.size() + bytes.size() > kBlockBytes) flush();
    if (bytes.size() >= kBlockBytes) {
      write(bytes);
    } else {
      block_.insert(block_.end(), bytes.begin(), bytes.end());
    }
  }
  /// What comes next is in the file already. \pre nothing was added.
  void skip(std::span<const std::byte> bytes) {
    digest_.add(bytes);
    offset_ += static_cast<std::int64_t>(bytes.size());
  }
  /// Gives what was added to the file.
  void flush() {
    write(block_);
    block_.clear();
  }
  /// \returns the digest of everything.
  std::uint64_t finish() {
    flush();
    return digest_.value();
  }

 private:
  void write(std::span<const std::byte> bytes) {
    digest_.add(bytes);
    base::write_at(fd_, offset_, bytes, path_);
    offset_ += static_cast<std::int64_t>(bytes.size());
  }

  int fd_;
  const std::string& path_;
  std::int64_t offset_;
  base::RunningDigest digest_;
  std::vector<std::byte> block_;
};

/// A dataset that was written whole.
struct WrittenBytes {
  std::string name;
  h5::PlacedBytes place;
  std::uint64_t digest = 0;

  /// Whether the file holds it. Blocks on I/O. \throws Error io_failed, cancelled.
  [[nodiscard]] bool is_in(int fd, const std::string& path, const std::stop_token& stop) const {
    std::vector<std::byte> block;
    base::RunningDigest there;
    constexpr auto kBlock = static_cast<std::int64_t>(SequentialBytes::kBlockBytes);
    for (std::int64_t done = 0; done < place.bytes; done += kBlock) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::cancelled, path + ": stopped while it was read back");
      }
      block.resize(static_cast<std::size_t>(std::min(kBlock, place.bytes - done)));
      base::read_at(fd, place.offset + done, block, path);
      there.add(block);
    }
    return there.value() == digest;
  }
};

}  // namespace chunkio::write
