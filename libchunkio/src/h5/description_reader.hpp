/// What a file says about itself, read from its attributes: the counterpart of
/// description_writer.hpp.
///
/// All functions but is_possible() are called while Library::lock() is held.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

#include <chunkio/dataset.hpp>

namespace chunkio::h5 {

/// Whether a file of `num_rows` rows can be this part of a larger dataset.
[[nodiscard]] bool is_possible(const ShardInfo& shard, std::int64_t num_rows) noexcept;

/// Whether the file is marked as one of this library's format. \throws Error hdf5_failed.
[[nodiscard]] bool has_format(hid_t file, const std::string& path);

/// Fills what a file of this format says about itself; leaves third-party files alone.
/// \pre info.path, leading, num_samples, channels, num_chunks are set.
/// \throws Error corrupt_data (names the attribute), unsupported (a later format version).
void read_description(hid_t file, hid_t leading, DatasetInfo& info);

/// What the dataset of sample digests says about itself: the datasets that they cover, in order;
/// none if the algorithm is not known. \throws Error corrupt_data.
[[nodiscard]] std::vector<std::string> read_covered_names(hid_t digests, const std::string& path);
/// The counterpart. \throws Error hdf5_failed.
void write_covered_names(hid_t digests, std::span<const std::string> names,
                         const std::string& path);

}  // namespace chunkio::h5
