/// The files in a zip archive, stored or deflated, with 64-bit sizes (PKWARE APPNOTE 6.3.10).
///
/// Contents are untrusted: sizes that the archive names lead to no memory being taken.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"

namespace h5pack {

struct ZipEntry {
  std::int64_t header_offset = 0;
  std::int64_t stored_bytes = 0;
  std::int64_t bytes = 0;
  std::uint32_t crc = 0;
  bool deflated = false;
};

class ZipFile {
 public:
  /// \throws Error not_found, io_failed, corrupt_data; unsupported: encrypted, or another method.
  explicit ZipFile(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const cli::SourceFile& file() const noexcept { return file_; }
  /// By name.
  [[nodiscard]] const std::map<std::string, ZipEntry>& entries() const noexcept { return entries_; }
  /// "'PATH' is damaged: WHY".
  [[nodiscard]] chunkio::Error damaged(const std::string& why) const;

 private:
  void read_directory();

  std::string path_;
  cli::SourceFile file_;
  std::int64_t size_ = 0;
  std::map<std::string, ZipEntry> entries_;
};

/// One file of an archive from begin to end. Not thread-safe. Blocks on I/O.
class ZipStream {
 public:
  /// \param archive  must outlive this. \throws Error corrupt_data: there is no such file in it.
  ZipStream(const ZipFile& archive, const std::string& name);
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;
  ~ZipStream();

  [[nodiscard]] std::int64_t bytes() const noexcept { return entry_.bytes; }
  /// Fills `out`. \throws Error corrupt_data: there is less, or with the last byte, the checksum
  ///                      is another one; io_failed.
  void read(std::span<std::byte> out);

 private:
  void read_stored(std::span<std::byte> out);
  void read_deflated(std::span<std::byte> out);

  const ZipFile& archive_;
  std::string name_;
  ZipEntry entry_;
  std::int64_t offset_ = 0;  // Of what is to be read next.
  std::int64_t left_ = 0;    // Of the stored bytes.
  std::int64_t done_ = 0;    // Bytes given.
  std::uint32_t crc_ = 0;
  std::array<std::uint8_t, std::size_t{1} << 17> input_{};
  z_stream inflater_{};
};

}  // namespace h5pack
