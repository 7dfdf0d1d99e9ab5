/// The structure of a file of encoded images. It is written when all bytes of the images are in the
/// file already, from kEncodedOffset on, since only then it is known how many there are.
///
/// Takes Library::lock().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5/deferred_writes.hpp"
#include "h5/placed_bytes.hpp"

namespace chunkio::h5 {

/// Where the bytes of the images begin. Structure that comes first has room before.
inline constexpr std::int64_t kEncodedOffset = std::int64_t{1} << 20;
/// Fewer bytes are wherever libhdf5 puts them.
inline constexpr std::int64_t kAlignedBytes = std::int64_t{64} << 10;

/// What is known of the images when all are there.
struct EncodedTotals {
  std::int64_t rows = 0, num_bytes = 0;
  std::int64_t max_height = 0, max_width = 0, max_pixels = 0;
  bool turned = false;  ///< Not all stand upright.
};

struct EncodedPlaces {
  PlacedBytes data;  ///< At kEncodedOffset; of fewer than kAlignedBytes elsewhere.
  PlacedBytes indptr, sizes, digests;
  std::optional<PlacedBytes> orientations = {};
  std::vector<PlacedBytes> fields = {};       ///< In the order of the specification.
  std::vector<DigestedBytes> structure = {};  ///< All that libhdf5 wrote.
};

/// Does not sync.
/// \param spec  checked, of as many samples as there are images; its sizes do not matter.
/// \throws Error hdf5_failed, io_failed, no_space.
[[nodiscard]] EncodedPlaces write_encoded_structure(int fd, const std::string& path,
                                                    const EncodedTotals& totals,
                                                    const DatasetSpec& spec,
                                                    const DatasetStatistics& statistics);

/// Where the bytes lie, as a reader finds them. \throws Error hdf5_failed, io_failed.
[[nodiscard]] PlacedBytes find_encoded_data(const std::string& path);

}  // namespace chunkio::h5
