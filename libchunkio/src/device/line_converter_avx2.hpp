/// The AVX2 side of LineConverter. Compiled for processors that may not be the one that runs, so it
/// includes nothing whose inline functions another file could end up calling.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkio::device {

/// \param scale, bias  24 numbers each, aligned to 32 bytes, repeated over the values.
void convert_to_float32_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                             const float* bias, float* output) noexcept;
void convert_to_float16_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                             const float* bias, std::uint16_t* output) noexcept;
void convert_to_bfloat16_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                              const float* bias, std::uint16_t* output) noexcept;
/// uint8 [n,3] to planes [3,n] that lie `stride` bytes apart; pixels in reverse order if `flipped`.
void split_three_channels_avx2(const std::uint8_t* pixels, std::size_t num_pixels,
                               std::uint8_t* planes, std::size_t stride, bool flipped) noexcept;

}  // namespace chunkio::device
