/// A file that libhdf5 reads, and that tells of every read.
///
/// Tests count with it what libhdf5 asks of a file; benchmarks let libhdf5 read from a slower disk
/// than there is. To libhdf5 it has the abilities of a file of its own POSIX driver, so that it
/// makes the same requests. Used while Library::lock() is held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <hdf5.h>

#include "h5/file_driver.hpp"
#include "h5/handle.hpp"
#include "io/local_file.hpp"

namespace bench {

/// What libhdf5 asked for: bytes [file_offset, file_offset + bytes), user block counted.
struct MeteredRead {
  std::int64_t file_offset = 0;
  std::int64_t bytes = 0;
  bool raw_data = false;  ///< Elements of datasets, rather than what describes them.
};

class MeteredReads final : public chunkio::h5::DriverFile {
 public:
  /// \param report  called before each read; does not throw.
  explicit MeteredReads(std::function<void(const MeteredRead&)> report)
      : report_(std::move(report)) {}

  /// Makes `access` open `path`, any number of times but once at a time. The file must be closed,
  /// as `access` must, before this object is gone.
  /// \throws Error not_found, io_failed, unsupported, hdf5_failed.
  void install(const chunkio::h5::ListId& access, const std::string& path);

  [[nodiscard]] unsigned long features() const noexcept override;
  [[nodiscard]] std::optional<std::int64_t> bytes() noexcept override { return file_->size(); }
  [[nodiscard]] bool read(H5FD_mem_t type, std::int64_t offset,
                          std::span<std::byte> out) noexcept override;

 private:
  std::function<void(const MeteredRead&)> report_;
  std::unique_ptr<const chunkio::io::LocalFile> file_;
};

}  // namespace bench
