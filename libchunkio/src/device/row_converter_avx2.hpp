/// The AVX2 side of RowConverter. Compiled for processors that may not be the one that runs, so it
/// includes nothing whose inline functions another file could end up calling.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkio::device {

/// As many values as both a vector of 8 and a pixel of any number of channels divide.
inline constexpr std::size_t kPattern = 24;
inline constexpr std::size_t kCacheLineBytes = 64;

/// Where eight values lie in a group of bytes: the first four in the 16 bytes from `low` on, the
/// others in the 16 bytes from `high` on, each where `mask` says (_mm256_shuffle_epi8).
struct LaneGather {
  std::int32_t low;
  std::int32_t high;
  alignas(32) std::int8_t mask[32];
};

/// Pixels of `num_channels` values each, one behind the other.
struct PixelRun {
  const std::uint8_t* pixels;
  std::size_t num_pixels;
  std::size_t num_channels;
};

/// Scale and bias of the values of a line: 2 * kPattern numbers each, which repeat after kPattern.
struct LineScale {
  const float* scale;
  const float* bias;
};

/// What makes one output type. Outputs are aligned to their type. With `streaming`, whole cache
/// lines are stored bypassing the cache; the caller fences.
struct Avx2Conversion {
  /// Values one behind the other.
  void (*convert)(const std::uint8_t* values, std::size_t count, LineScale scale, bool streaming,
                  void* output) noexcept;
  /// One channel; pixels in reverse order if `flipped`.
  /// \param gather  of its values in 8 pixels. \pre run.num_channels >= 2.
  void (*convert_channel)(PixelRun run, std::size_t channel, bool flipped, const LaneGather& gather,
                          LineScale scale, bool streaming, void* output) noexcept;
  /// All channels, pixels in reverse order.
  /// Streams only what begins with a cache line.
  /// \param gathers  three, of the kPattern values of as many pixels as they are.
  void (*convert_reversed)(PixelRun run, const LaneGather* gathers, LineScale scale, bool streaming,
                           void* output) noexcept;
};

extern const Avx2Conversion kToFloat32Avx2;
extern const Avx2Conversion kToFloat16Avx2;
extern const Avx2Conversion kToBfloat16Avx2;

}  // namespace chunkio::device
