/// Datasets in several files, written by several machines and read as one.
///
/// The names are those of many other programs: train.h5 becomes train-00000-of-00008.h5 to
/// train-00007-of-00008.h5, and `train-*-of-00008.h5` names all of them, for Dataset::open().
#pragma once

#include <cstdint>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// A dataset has at most so many files.
inline constexpr std::int64_t kMaxShards = 4096;

/// The name of one of `count` files: both numbers, five digits each, before the extension of
/// `path`. \throws Error invalid_argument unless 0 <= index < count <= kMaxShards.
CHUNKIO_EXPORT std::string shard_path(const std::string& path, std::int64_t index,
                                      std::int64_t count);
/// The name for all of them. \throws Error invalid_argument unless 1 <= count <= kMaxShards.
CHUNKIO_EXPORT std::string shard_pattern(const std::string& path, std::int64_t count);

struct LinkOptions {
  bool overwrite = false;  ///< Replace an existing file, and discard a leftover PATH.partial.
};

/// Writes a file in which other programs find the shards as one dataset: HDF5 virtual datasets for
/// images, labels and fields, which refer to the shards by paths relative to it, and their
/// attributes. It holds no pixels, and works as long as the shards stay where they are beside it.
/// This library reads the shards themselves instead.
///
/// Appears whole or not at all; PATH.partial while it is written. Blocks on I/O; reads the first
/// and the last image of each shard through the new file.
/// \param dataset  of several files (DatasetInfo::shards).
/// \throws Error invalid_argument (one file only, or PATH is one of them), output_exists, not_found
///         (no such folder), no_space, io_failed, hdf5_failed, digest_mismatch (an image is
///         another one through the new file), corrupt_data (a shard was changed meanwhile).
CHUNKIO_EXPORT void link_shards(const Dataset& dataset, const std::string& path,
                                const LinkOptions& options = {});

}  // namespace chunkio
