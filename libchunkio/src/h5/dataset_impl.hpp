/// What stands behind an open Dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <chunkio/dataset.hpp>

#include "base/positional_io.hpp"
#include "h5/handle.hpp"

namespace chunkio {

/// Immutable after open(), except that libhdf5 calls on `file` and `images` hold Library::lock().
struct Dataset::Impl {
  DatasetInfo info;

  /// For positional reads; opened before libhdf5 looked at the file.
  base::FileDescriptor descriptor;
  std::int64_t file_bytes = 0;            ///< Size of the file when it was opened.
  std::int64_t modified_nanoseconds = 0;  ///< Its modification time then, since 1970.
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

  /// To be called after reading bytes and before they are believed. A mapping reads zeros beyond
  /// the end of a page that was cut off, libhdf5 reads zeros beyond the end of the file, and
  /// whoever rewrote the file may be half done. Compares size and modification time; not the change
  /// time, which also moves when the file is renamed, or unlinked because a new version took its
  /// name: what was opened stays as it is then.
  /// \throws Error corrupt_data if the file was changed since it was opened, io_failed.
  void check_unchanged() const;

  ~Impl();
};

namespace h5 {

/// Reads rows [first, first + count) of a dataset of shape `shape` as `dtype` into `out`, which has
/// exactly their size. Takes Library::lock().
/// \param name, path  the dataset and its file, for messages.
/// \throws Error invalid_argument (range, size), hdf5_failed.
void read_rows(const DatasetId& dataset, const Shape& shape, DType dtype, std::int64_t first,
               std::int64_t count, std::span<std::byte> out, const std::string& name,
               const std::string& path);

}  // namespace h5
}  // namespace chunkio
