/// Writes rows of a dataset to a new file of encoded images.
///
/// Data flow: encoded images -> EncodedWriter, byte by byte; images that are read as pixels, in
/// windows of rows in the new order -> PNG or JPEG, in parallel -> EncodedWriter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5pack/pack/repacker.hpp"

namespace h5pack {

/// Whether the rows of that dataset come to a file of encoded images: they are encoded and not
/// decoded while they are read, or the options encode them.
[[nodiscard]] bool becomes_encoded(const chunkio::DatasetInfo& info, const RepackOptions& options);

/// As plan_repack(). \pre becomes_encoded().
/// \throws chunkio::Error invalid_argument: an option that only raw images have, or that encodes
///         what is encoded; unsupported: the images cannot be such files.
[[nodiscard]] RepackResult plan_repack_encoded(const chunkio::Dataset& dataset,
                                               const std::vector<std::int64_t>& rows,
                                               const std::string& path,
                                               const RepackOptions& options);

/// As repack(). Encoded images keep their bytes, sizes and orientations, and are compared with
/// their digests. Statistics are those of the images as they are stored: carried along if all
/// encoded rows are there, else computed, for which encoded images are decoded once.
/// \pre becomes_encoded(); rows are distinct, inside the dataset, at least one.
/// \throws chunkio::Error as plan_repack_encoded(), repack() and EncodedWriter; digest_mismatch,
///         corrupt_data: a row that is damaged, by its number.
RepackResult repack_encoded(const chunkio::Dataset& dataset, const std::vector<std::int64_t>& rows,
                            const std::string& path, const RepackOptions& options);

}  // namespace h5pack
