/// A file driver for libhdf5 that reads, and tells of every read.
///
/// Tests count with it what libhdf5 asks of a file; benchmarks let libhdf5 read from a slower disk
/// than there is. To libhdf5 it has the abilities of its own POSIX driver, so that it makes the
/// same requests. All functions are called while Library::lock() is held, and so is what they tell.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <hdf5.h>

#include "h5/handle.hpp"

namespace bench {

/// What libhdf5 asked for: bytes [file_offset, file_offset + bytes), user block counted.
struct MeteredRead {
  std::int64_t file_offset = 0;
  std::int64_t bytes = 0;
  bool raw_data = false;  ///< Elements of datasets, rather than what describes them.
};

/// The reads of all files that are opened with it, read-only.
class MeteredReads {
 public:
  /// \param report  called before each read; does not throw.
  explicit MeteredReads(std::function<void(const MeteredRead&)> report)
      : report_(std::move(report)) {}
  MeteredReads(const MeteredReads&) = delete;
  MeteredReads& operator=(const MeteredReads&) = delete;

  /// Makes `access` open files under this driver. They must be closed, as `access` must, before
  /// this object is gone. \throws Error hdf5_failed.
  void install(const chunkio::h5::ListId& access);

  /// For the driver.
  void report(const MeteredRead& request) const { report_(request); }

 private:
  std::function<void(const MeteredRead&)> report_;
  chunkio::h5::UniqueId<&H5FDunregister> driver_;
};

}  // namespace bench
