/// A file driver for libhdf5 that reads metadata and only notes where raw data lies.
///
/// For versions without H5Dchunk_iter; see chunk_index.hpp. All functions are called while
/// Library::lock() is held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "h5/handle.hpp"

// H5Dchunk_iter came with 1.10.10, 1.12.3 and 1.14.0; the one of 1.13 gave other offsets.
#ifndef CHUNKIO_HAVE_CHUNK_ITER
#if H5_VERSION_GE(1, 14, 0) || (H5_VERSION_GE(1, 12, 3) && !H5_VERSION_GE(1, 13, 0)) || \
    (H5_VERSION_GE(1, 10, 10) && !H5_VERSION_GE(1, 11, 0))
#define CHUNKIO_HAVE_CHUNK_ITER 1
#else
#define CHUNKIO_HAVE_CHUNK_ITER 0
#endif
#endif

#if !CHUNKIO_HAVE_CHUNK_ITER

namespace chunkio::h5 {

/// The raw data that libhdf5 asked for last.
struct ProbedRange {
  std::int64_t file_offset = -1;  ///< User block included.
  std::int64_t bytes = 0;
  int requests = 0;
  /// Why metadata could not be read, if that is what failed.
  std::optional<Error> failure = {};
};

/// A file open for probing.
struct Probe {
  /// The driver's own, made before libhdf5 asks for it: libhdf5 would not say that memory ran out.
  std::shared_ptr<void> memory;
  /// Outlives the file: libhdf5 1.10.8 drops the file's own hold on its driver before it calls the
  /// driver to close the file.
  UniqueId<&H5FDunregister> driver;
  FileId file;
};

/// Opens `fd` for probing: raw data is not read, its place is written to `range` instead.
/// \param fd, range  must outlive the file.
/// \throws Error hdf5_failed.
[[nodiscard]] Probe open_probe(int fd, ProbedRange& range, const std::string& path);

}  // namespace chunkio::h5

#endif
