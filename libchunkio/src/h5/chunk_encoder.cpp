#include "h5/chunk_encoder.hpp"

#include <libdeflate.h>

#include <chunkio/error.hpp>

namespace chunkio::h5 {

void ChunkEncoder::FreeCompressor::operator()(libdeflate_compressor* compressor) const noexcept {
  libdeflate_free_compressor(compressor);
}

// The byte shuffle comes before deflate and moves nothing in elements of one byte.
ChunkEncoder::ChunkEncoder(const ChunkFilter& filter)
    : compressor_(libdeflate_alloc_compressor(filter.deflate_level)),
      mask_of_deflate_(filter.shuffle ? 2U : 1U) {
  if (compressor_ == nullptr) {
    throw Error(ErrorCode::out_of_resources, "no memory for a compressor of deflate streams");
  }
}

ChunkEncoder::~ChunkEncoder() = default;

EncodedChunk ChunkEncoder::encode(std::span<const std::byte> raw) {
  EncodedChunk encoded{.stored = std::vector<std::byte>(raw.size())};
  const std::size_t bytes = libdeflate_zlib_compress(
      compressor_.get(), raw.data(), raw.size(), encoded.stored.data(), encoded.stored.size() - 1);
  if (bytes == 0) {
    encoded.stored.assign(raw.begin(), raw.end());
    encoded.mask = mask_of_deflate_;
  } else {
    encoded.stored.resize(bytes);
    encoded.stored.shrink_to_fit();  // it may wait for its turn to be written
  }
  return encoded;
}

}  // namespace chunkio::h5
