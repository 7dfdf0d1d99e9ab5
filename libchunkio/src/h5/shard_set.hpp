/// Several files opened as one dataset.
///
/// Each is opened as a dataset of its own, with all the checks that this means, and then compared
/// with the first: what they hold must be alike, and what they say of the dataset that they are
/// parts of must agree. Nothing is read of their images.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "base/shard_names.hpp"
#include "h5/dataset_impl.hpp"

namespace chunkio::h5 {

/// Opens all files of `pattern`.
/// \throws Error not_found (naming the files that are missing), corrupt_data (a file that does not
///         belong to the others, and why), out_of_resources, and as Dataset::open() does.
[[nodiscard]] std::shared_ptr<const Dataset::Impl> open_shards(const base::ShardPattern& pattern,
                                                               const OpenOptions& options);

/// The files behind a dataset, in the order of their rows: itself, or its shards.
[[nodiscard]] std::vector<std::shared_ptr<const Dataset::Impl>> files_of(
    const std::shared_ptr<const Dataset::Impl>& dataset);

/// The rows of each file.
[[nodiscard]] std::vector<std::int64_t> rows_of_files(const Dataset::Impl& dataset);

/// What several files that fit together say in all. \pre not empty.
/// \throws Error corrupt_data if their chunks or bytes cannot be counted, or chunks differ.
[[nodiscard]] DatasetInfo combined_info(
    const std::string& path, std::span<const std::shared_ptr<const Dataset::Impl>> files);

}  // namespace chunkio::h5
