/// Opening one file as a dataset: one of this format, or a third-party HDF5 file.
#pragma once

#include <memory>
#include <string>

#include <chunkio/dataset.hpp>

#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"

namespace chunkio::h5 {

/// Whether a file of link_shards() is opened: only right after it was written.
enum class LinkFiles { refused, opened };

/// \throws Error as Dataset::open() does.
[[nodiscard]] std::shared_ptr<const Dataset::Impl> open_dataset_file(
    std::shared_ptr<const ByteSource> bytes, const OpenOptions& options,
    LinkFiles link_files = LinkFiles::refused);
[[nodiscard]] std::shared_ptr<const Dataset::Impl> open_dataset_file(
    const std::string& path, const OpenOptions& options, LinkFiles link_files = LinkFiles::refused);

/// A link over shards says what to open instead. Asked before any dataset is opened: libhdf5
/// decodes the mappings of a virtual dataset with the dataset, from a heap without checksums, and
/// some damage there ends the process. Called while Library::lock() is held.
/// \throws Error refused_by_policy.
void refuse_link(const FileId& file, const std::string& path);

}  // namespace chunkio::h5
