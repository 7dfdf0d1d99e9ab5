/// What a file says about itself, written as attributes: the counterpart of read_description().
///
/// All functions are called while Library::lock() is held, and throw Error hdf5_failed. `path` is
/// the file's name, for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hdf5.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>

#include "h5/schema.hpp"

namespace chunkio::h5 {

/// What is not of the dataset but of the file.
struct FileIdentity {
  std::string creator = {};
  std::string uuid = {};
  std::optional<ChunkCacheSettings> cache = {};  ///< Recommended to readers; or none.
  std::int64_t format = kFormatVersion;
};

/// Of the root group.
void write_root_description(hid_t root, const DatasetSpec& spec, const FileIdentity& file,
                            const std::string& path);
/// Of the root group of a shard. Writes nothing of a file that is none.
void write_shard(hid_t root, const std::optional<ShardInfo>& shard, const std::string& path);
/// Of the images: what is known at the start.
void write_image_description(hid_t images, const DatasetSpec& spec, const std::string& path);
/// Of the images: what is known when all have been seen.
void write_statistics(hid_t images, const DatasetStatistics& statistics, const std::string& path);

}  // namespace chunkio::h5
