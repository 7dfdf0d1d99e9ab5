/// What becomes of one uint8 value: the one definition, for CPU code and CUDA kernels alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define CHUNKIO_HOST_DEVICE __host__ __device__
#else
#define CHUNKIO_HOST_DEVICE
#endif

namespace chunkio::device {

/// (value / 255 - mean) / std as one multiplication and one addition.
struct ChannelScale {
  float scale = 1;
  float bias = 0;
};

inline constexpr int kMaxChannels = 4;

/// Rounded once, so that every processor that has a fused multiply-add gives the same bits.
CHUNKIO_HOST_DEVICE inline float normalized(std::uint8_t value, ChannelScale channel) noexcept {
  return fmaf(static_cast<float>(value), channel.scale, channel.bias);
}

CHUNKIO_HOST_DEVICE inline std::uint32_t float_bits(float value) noexcept {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The upper half, rounded to nearest, ties to even. \pre not a NaN.
CHUNKIO_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) noexcept {
  const std::uint32_t bits = float_bits(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/// IEEE binary16, rounded to nearest, ties to even; beyond 65504 infinity. \pre not a NaN.
CHUNKIO_HOST_DEVICE inline std::uint16_t to_float16(float value) noexcept {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  constexpr std::uint32_t kInfinity = 0x7C00U;
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2^-14
  constexpr std::uint32_t kOverflow = 0x47800000U;        // 2^16
  if (magnitude >= kOverflow) return static_cast<std::uint16_t>(sign | kInfinity);
  if (magnitude < kSmallestNormal) {
    // Adding 0.5 leaves a float whose last bit is worth 2^-24, as that of a subnormal half is, and
    // rounds to it.
    float positive = 0;
    memcpy(&positive, &magnitude, sizeof positive);
    return static_cast<std::uint16_t>(sign | (float_bits(positive + 0.5F) - float_bits(0.5F)));
  }
  // Rounding may carry into the exponent, up to infinity, which is what it should do.
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

}  // namespace chunkio::device
