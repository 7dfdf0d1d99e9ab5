/// What stands behind an open Dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/positional_io.hpp"
#include "h5/handle.hpp"
#include <chunkio/dataset.hpp>

namespace chunkio {

/// Immutable after open(), except that libhdf5 calls on `file` and `images` hold Library::lock().
struct Dataset::Impl {
  DatasetInfo info;

  /// For positional reads; opened before libhdf5 looked at the file.
  base::FileDescriptor descriptor;
  std::int64_t file_bytes = 0;  ///< Size of the file when it was opened.
  h5::FileId file;
  h5::DatasetId images;

  /// File offset of row 0 if all rows lie in one unfiltered run in row order (contiguous data, and
  /// chunks of whole samples behind an implicit or single-chunk index): row r is at *linear_offset
  /// + r * sample_bytes. Checked to lie inside the file.
  std::optional<std::int64_t> linear_offset;
  /// If there is no such run: why, as a clause ("chunks cut samples", "deflate filter", ...).
  std::string nonlinear_reason;

  /// Bytes that the chunk cache of `images` may take: two row groups where libhdf5 must read whole
  /// chunks to deliver a row (filtered, or chunks that cut samples), else none, since it then reads
  /// rows directly.
  std::int64_t chunk_cache_bytes = 0;

  /// To be called after reading through libhdf5, which delivers zeros for bytes beyond the end of
  /// the file: what was read before a truncation that has not happened yet is right. \throws Error
  /// corrupt_data if the file is shorter than when it was opened, io_failed.
  void check_not_truncated() const;

  ~Impl();
};

namespace h5 {

/// Reads rows [first, first + count) of a dataset of shape `shape` as `dtype` into `out`, which has
/// exactly their size. Takes Library::lock(). \param name, path  the dataset and its file, for
/// messages. \throws Error invalid_argument (range, size), hdf5_failed.
void read_rows(const DatasetId& dataset, const Shape& shape, DType dtype, std::int64_t first,
               std::int64_t count, std::span<std::byte> out, const std::string& name,
               const std::string& path);

}  // namespace h5
}  // namespace chunkio
