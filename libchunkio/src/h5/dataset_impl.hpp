/// What stands behind an open Dataset.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/dataset.hpp>

#include "h5/encoded_images.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/source_file.hpp"
#include "h5/sparse_matrix.hpp"
#include "h5/stored_array.hpp"

namespace chunkio {

/// Immutable after open(), except for field_in_use, and that libhdf5 calls on file() hold
/// Library::lock().
///
/// Either one file, or several that are read as one dataset (shard_set.hpp). Stored bytes are read
/// file by file: h5::files_of().
struct Dataset::Impl {
  DatasetInfo info;
  /// The files, if there are several; then only `info` and `oversized_fields` of what follows mean
  /// anything here.
  std::vector<std::shared_ptr<const Impl>> shards;

  std::shared_ptr<const ByteSource> bytes;
  std::uint64_t opened_version = 0;  ///< Of the bytes when the file was opened.
  std::unique_ptr<h5::SourceFile> opened;
  /// That file, for libhdf5.
  [[nodiscard]] const h5::FileId& file() const noexcept { return opened->id(); }
  h5::External external = h5::External::refused;
  /// Of a CSR matrix its values, of encoded images their bytes.
  std::shared_ptr<const h5::StoredArray> leading;
  /// Of a CSR matrix that leads; else null.
  std::shared_ptr<const h5::SparseMatrix> sparse;
  /// Of encoded images that lead; else null.
  std::shared_ptr<const h5::EncodedImages> encoded;
  /// Datasets parallel to the one that leads that are too large to be fields.
  std::vector<h5::DatasetSummary> oversized_fields;
  /// The field that read_field() read last, unless to its end: reading in pieces decodes each chunk
  /// once, and nothing stays in memory afterwards. Guarded by Library::lock().
  mutable std::shared_ptr<const h5::StoredArray> field_in_use;

  /// To be called after reading bytes and before they are believed. A mapping reads zeros beyond
  /// the end of a page that was cut off, libhdf5 reads zeros beyond the end of the file, and
  /// a program that rewrites the file may be half done. \throws Error corrupt_data if the bytes
  /// changed since they were opened, io_failed.
  void check_unchanged() const;
};

namespace h5 {

/// Whether a file may have that many rows of which each is read when it is opened, such as labels.
/// Filters make a thousand out of one byte, and those of a virtual dataset can be claimed without
/// any; but no sample takes less than a byte.
[[nodiscard]] inline bool may_have_rows(const Dataset::Impl& file, std::int64_t rows) noexcept {
  constexpr std::int64_t kAlwaysRead = std::int64_t{1} << 24;
  return rows <= std::max(kAlwaysRead, file.bytes->size());
}

}  // namespace h5
}  // namespace chunkio
