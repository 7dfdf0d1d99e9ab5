/// The note in the journal on a packed chunk: places, skipped images, sizes, sums of pixels.
///
/// With it a resumed run need not look at the images again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/statistics.hpp>

#include "h5pack/image/image_sizes.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

using chunkio::PixelStatistics;

/// A chunk holds the good images of the places [first_place, end_place) in pack order. Those of
/// all chunks follow on each other without gaps; skipped places belong to the chunk that the next
/// good image is in.
struct ChunkRecord {
  std::int64_t first_place = 0;
  std::int64_t end_place = 0;
  std::vector<SkippedImage> skipped = {};
  ImageSizes sizes = {};
  PixelStatistics pixels;
  std::int64_t num_limited = 0;  ///< Encoded images that were made smaller.

  /// Adds what a record says of other places, but not the places.
  void add(const ChunkRecord& other);
};

/// As JSON of one line.
[[nodiscard]] std::string to_note(const ChunkRecord& record);
/// \throws Error corrupt_data: a note that to_note() did not write for such images.
[[nodiscard]] ChunkRecord from_note(std::string_view note, std::int64_t channels,
                                    chunkio::Layout layout);

/// Of a chunk that an earlier run wrote.
/// \throws Error corrupt_data: as from_note(), or the sums are of more or fewer images.
[[nodiscard]] ChunkRecord record_of(const chunkio::ResumedChunk& resumed, std::int64_t channels,
                                    chunkio::Layout layout);

}  // namespace h5pack
