/// A local file opened once more for reads or writes that bypass the page cache (O_DIRECT).
///
/// For data far larger than memory: a training run then does not push everything else out of the
/// page cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <chunkio/byte_source.hpp>

#include "base/positional_io.hpp"
#include "io/local_file.hpp"

namespace chunkio::io {

/// A multiple of every block size in use: what offsets, lengths and addresses of direct I/O are
/// aligned to where nothing smaller is known.
inline constexpr std::int64_t kDirectPage = 4096;

/// Bytes to read or write at a time: a disk serves no less at full speed, since it is asked for
/// nothing else meanwhile (decision 008).
inline constexpr std::int64_t kDirectPieceBytes = std::int64_t{4} << 20;

struct DirectDescriptor {
  base::FileDescriptor descriptor = {};  ///< Invalid: the file system refuses direct I/O.
  std::int64_t block_bytes = 1;          ///< Direct I/O begins and ends at multiples of it.
};

/// \param fd  the file as it is open already.
/// \param access  O_RDONLY, O_WRONLY or O_RDWR.
[[nodiscard]] DirectDescriptor open_direct(int fd, const std::string& path, int access);

class DirectFile final : public ByteSource {
 public:
  /// \pre direct.descriptor.valid().
  DirectFile(std::shared_ptr<const LocalFile> file, DirectDescriptor direct)
      : file_(std::move(file)), direct_(std::move(direct)) {}

  [[nodiscard]] const std::string& name() const noexcept override { return file_->name(); }
  [[nodiscard]] std::int64_t size() const noexcept override { return file_->size(); }
  [[nodiscard]] std::uint64_t version() const override { return file_->version(); }
  /// What is not aligned is read through the page cache. Does not ask `stop`.
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  [[nodiscard]] std::int64_t request_bytes() const noexcept override { return kDirectPieceBytes; }
  [[nodiscard]] std::int64_t block_bytes() const noexcept override { return direct_.block_bytes; }

 private:
  std::shared_ptr<const LocalFile> file_;
  DirectDescriptor direct_;
};

/// `source`, read bypassing the page cache if it is a local file and its file system allows it;
/// null if not.
[[nodiscard]] std::shared_ptr<const ByteSource> open_direct(
    const std::shared_ptr<const ByteSource>& source);
/// The same, but `source` itself if not.
[[nodiscard]] std::shared_ptr<const ByteSource> direct_if_possible(
    const std::shared_ptr<const ByteSource>& source);

}  // namespace chunkio::io
