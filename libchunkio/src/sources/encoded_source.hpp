/// Encoded images: reads the bytes of each that is wanted, and decodes it into its place.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "base/scratch_pool.hpp"
#include "h5/encoded_images.hpp"
#include "image/sample_decoder.hpp"
#include "sources/element_reader.hpp"

namespace chunkio::sources {

class EncodedSource final : public ChunkSource {
 public:
  /// Reads the offsets of all images once, to check them and to know the longest. Blocks on
  /// storage.
  /// \param bytes    of the file. \param scratch  shared by what is read together.
  /// \param seed     of random crops. \param first_sample  the sample id of row 0 of the file.
  /// \param verify   compare images with their digests before they are decoded.
  /// \pre file->encoded->decoding.
  /// \throws Error corrupt_data, io_failed, hdf5_failed, out_of_resources, cancelled.
  EncodedSource(std::shared_ptr<const Dataset::Impl> file, std::shared_ptr<const ByteSource> bytes,
                std::shared_ptr<base::BufferPool> scratch, std::int64_t group_samples,
                std::uint64_t seed, std::int64_t first_sample, bool verify);

  /// \throws DamagedRows: images that cannot be decoded (corrupt_data) or do not match.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// \throws Error: the image is damaged.
  void decode(std::span<const std::byte> encoded, std::int64_t row, std::int64_t epoch,
              std::span<std::byte> target) const;

  std::shared_ptr<const Dataset::Impl> file_;
  const h5::EncodedImages& images_;
  std::shared_ptr<const ByteSource> bytes_;
  std::shared_ptr<base::BufferPool> scratch_;
  ElementReader offsets_;
  ElementReader data_;
  std::optional<ElementReader> digests_;  // absent: nothing is compared
  std::int64_t group_samples_;
  std::uint64_t seed_;
  std::int64_t first_sample_;
  std::int64_t longest_ = 0;                 // image, in bytes
  std::vector<std::int64_t> group_offsets_;  // of the first image of each group, and the end
  mutable base::ScratchPool<image::SampleDecoder> decoders_;
  /// Held by who decodes an image that takes more than kSmallBytes, so that those take memory once,
  /// not once a thread.
  mutable std::mutex large_image_;
};

}  // namespace chunkio::sources
