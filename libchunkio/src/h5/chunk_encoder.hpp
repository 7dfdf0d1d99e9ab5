/// Applying deflate to chunks without libhdf5, so that they are compressed in parallel: the
/// counterpart of ChunkDecoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <chunkio/dataset_writer.hpp>

struct libdeflate_compressor;

namespace chunkio::h5 {

/// A chunk as it is to be stored.
struct EncodedChunk {
  std::vector<std::byte> stored = {};
  /// Bit i: filter i of the pipeline was left out.
  std::uint32_t mask = 0;
};

/// Makes zlib streams, as HDF5's deflate filter does. One for each concurrent caller.
class ChunkEncoder {
 public:
  /// \pre filter.deflate_level is 1 to 9. \throws Error out_of_resources.
  explicit ChunkEncoder(const ChunkFilter& filter);
  ~ChunkEncoder();

  /// Compresses a chunk of one-byte elements; one that would not become smaller is left as it is.
  [[nodiscard]] EncodedChunk encode(std::span<const std::byte> raw);

 private:
  struct FreeCompressor {
    void operator()(libdeflate_compressor* compressor) const noexcept;
  };

  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor_;
  std::uint32_t mask_of_deflate_;
};

}  // namespace chunkio::h5
