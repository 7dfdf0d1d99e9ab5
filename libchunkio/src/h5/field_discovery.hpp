/// Which datasets of a file run parallel to the one that leads: labels, other fields, digests of
/// samples.
///
/// All functions but oversized() are called while Library::lock() is held.
#pragma once

#include <memory>
#include <string>

#include <chunkio/dataset.hpp>

#include "h5/dataset_file.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/file_contents.hpp"

namespace chunkio::h5 {

/// Finds the fields of a file whose leading dataset is open and whose description was read: sets
/// `oversized_fields`, and in `info` labels, why_no_labels, fields, left_out and digests_cover.
/// \throws Error not_found, refused_by_policy, unsupported, corrupt_data.
void find_fields(Dataset::Impl& file, const FileContents& contents, const OpenOptions& options,
                 LinkFiles link_files);

/// Opens a field, or the labels, to be read through libhdf5.
/// \throws Error as open_array: what cannot be decoded within bounds is not read.
[[nodiscard]] std::shared_ptr<const StoredArray> open_field(const Dataset::Impl& file,
                                                            const FieldInfo& field);

/// The error of one of `oversized_fields`.
[[nodiscard]] Error oversized(const DatasetSummary& dataset, const std::string& path);

}  // namespace chunkio::h5
