/// From a row of the source to the pixels of a sample.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "decode.hpp"
#include "picture.hpp"
#include "picture_file.hpp"
#include "picture_transform.hpp"
#include "skipped_picture.hpp"
#include "sources/listing.hpp"

namespace h5pack {

/// The size that all samples have, and which source row settled it.
struct SampleSize {
  PictureSize size;
  std::int64_t row = -1;  ///< -1: the options did.
};

/// Everything that one thread needs to read images of one split. Rows of a file that come before
/// them are not its business. Not thread-safe: one for each thread. `split` must outlive it.
class PictureReader {
 public:
  PictureReader(const Split& split, const PictureOptions& options);

  /// The size source row `row` will have in the file. Blocks on I/O.
  /// \throws Error as PictureDecoder::open().
  [[nodiscard]] PictureSize output_size(std::int64_t row);

  /// Reads, decodes and transforms source row `row`. Blocks on I/O.
  /// \param place   in pack order, for the answer.
  /// \param target  one sample of size `expected`; unspecified if the image is skipped.
  /// \returns its size in the source, or why it cannot be packed.
  /// \throws Error out_of_resources: what is no fault of the image.
  [[nodiscard]] std::variant<PictureSize, SkippedPicture> read(std::int64_t row, std::int64_t place,
                                                               const SampleSize& expected,
                                                               std::span<std::uint8_t> target);

  /// What the file of source row `row` holds if its name says something else; absent if it does
  /// not. \pre read() has just succeeded for that row.
  [[nodiscard]] std::optional<PictureFormat> misnamed(std::int64_t row) const;

 private:
  [[nodiscard]] std::string name(std::int64_t row) const { return picture_name(*split_, row); }
  PictureSize open(std::int64_t row);
  void decode(std::int64_t row, std::uint8_t* target);
  PictureSize read_or_throw(std::int64_t row, const SampleSize& expected,
                            std::span<std::uint8_t> target);

  const Split* split_;
  PictureOptions options_;
  PictureDecoder decoder_;
  PictureTransform transform_;
  std::vector<std::uint8_t> record_;   // Pixels of a record file.
  std::vector<std::uint8_t> decoded_;  // Pixels that still need a transform.
};

}  // namespace h5pack
