/// Images that are stored encoded: a group with their bytes one after the other (`data`), where
/// each begins (`indptr`), their `sizes` [N,2] and, unless all stand upright, `orientations`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5/file_contents.hpp"
#include "h5/stored_array.hpp"
#include "image/sample_decoder.hpp"

namespace chunkio::h5 {

struct EncodedImages {
  std::string name = {};  ///< Path of the group.
  std::int64_t rows = 0, num_bytes = 0;
  std::int64_t max_height = 0, max_width = 0, max_pixels = 0;
  std::shared_ptr<const StoredArray> data = {};     ///< uint8 [num_bytes].
  std::shared_ptr<const StoredArray> offsets = {};  ///< `indptr`: int64 [rows + 1].
  std::shared_ptr<const StoredArray> sizes = {};    ///< int32 [rows, 2]: height, width.
  std::shared_ptr<const StoredArray> digests = {};  ///< uint64 [rows]; null: there are none.
  std::vector<std::uint8_t> orientations = {};      ///< [rows], or empty: all are upright.
  std::optional<image::Decoding> decoding = {};     ///< How they are delivered, if they are.

  [[nodiscard]] image::Orientation orientation(std::int64_t row) const {
    return orientations.empty() ? image::Orientation()
                                : image::Orientation(orientations[static_cast<std::size_t>(row)]);
  }
  /// What decoding an image takes at most.
  [[nodiscard]] std::int64_t decoder_bytes() const noexcept {
    return image::SampleDecoder::most_bytes(max_pixels);
  }
  /// "image 7 of images in FILE".
  [[nodiscard]] std::string describe(std::int64_t row, const std::string& path) const;

  /// \param of_rows  offsets of rows from `first` on, and the end of the last.
  /// \throws Error corrupt_data, naming the row, unless they ascend within the bytes, by at most
  /// kMaxSampleBytes.
  void check_offsets(std::int64_t first, std::span<const std::int64_t> of_rows,
                     const std::string& path) const;
  /// \param stored  what the image says itself. \throws Error corrupt_data if it is larger than any
  /// image of the file.
  void check_size(image::Size stored) const;
  /// An error of one image, with its name before the message.
  [[nodiscard]] Error named(const Error& error, std::int64_t row, const std::string& path) const;
};

/// Whether a dataset is a part of the encoded images of a group.
[[nodiscard]] bool is_encoded_member(const std::string& group, const std::string& dataset);

/// Whether `group` exists and says that it has encoded images. Called while Library::lock() is
/// held.
[[nodiscard]] bool has_encoded_images(const Dataset::Impl& file, const std::string& group);

/// Opens them. Called while Library::lock() is held. \throws Error corrupt_data, invalid_argument
/// (decode), unsupported, hdf5_failed.
[[nodiscard]] std::shared_ptr<const EncodedImages> open_encoded(
    const Dataset::Impl& file, const std::string& group, const FileContents& contents,
    const std::optional<DecodeOptions>& decode);

/// See Dataset::read_encoded(). Takes Library::lock().
[[nodiscard]] EncodedImage read_encoded(const EncodedImages& images, std::int64_t row,
                                        const std::string& path);

/// Decoded rows, one after the other; what would be random is the centre. Takes Library::lock().
/// \pre images.decoding. \throws Error as ImageDecoder, naming the image.
void read_decoded(const EncodedImages& images, std::int64_t first, std::int64_t count,
                  std::span<std::byte> out, const std::string& path);

}  // namespace chunkio::h5
