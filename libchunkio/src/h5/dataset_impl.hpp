/// What stands behind an open Dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <chunkio/dataset.hpp>

#include "base/positional_io.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/stored_array.hpp"

namespace chunkio {

/// Immutable after open(), except for field_in_use, and that libhdf5 calls on `file` hold
/// Library::lock().
///
/// Either one file, or several that are read as one dataset (shard_set.hpp). Stored bytes are read
/// file by file: h5::files_of().
struct Dataset::Impl {
  DatasetInfo info;
  /// The files, if there are several; then only `info` and `oversized_fields` of what follows mean
  /// anything here.
  std::vector<std::shared_ptr<const Impl>> shards;

  /// For positional reads; opened before libhdf5 looked at the file.
  base::FileDescriptor descriptor;
  std::int64_t file_bytes = 0;            ///< Size of the file when it was opened.
  std::int64_t modified_nanoseconds = 0;  ///< Its modification time then, since 1970.
  h5::FileId file;
  h5::External external = h5::External::refused;
  std::shared_ptr<const h5::StoredArray> images;
  /// Datasets parallel to the images that are too large to be fields.
  std::vector<h5::DatasetSummary> oversized_fields;
  /// The field that read_field() read last, unless to its end: reading in pieces decodes each chunk
  /// once, and nothing stays in memory afterwards. Guarded by Library::lock().
  mutable std::shared_ptr<const h5::StoredArray> field_in_use;

  /// To be called after reading bytes and before they are believed. A mapping reads zeros beyond
  /// the end of a page that was cut off, libhdf5 reads zeros beyond the end of the file, and
  /// a program that rewrites the file may be half done. Compares size and modification time; not
  /// the change time, which also moves when the file is renamed, or unlinked because a new version
  /// took its name: what was opened stays as it is then. \throws Error corrupt_data if the file was
  /// changed since it was opened, io_failed.
  void check_unchanged() const;
};

}  // namespace chunkio
