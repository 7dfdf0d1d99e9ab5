/// What becomes of one uint8 value, for CPU code and CUDA kernels; where a GPU has a faster way to
/// the same bits, it is beside the definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <chunkio/tensor.hpp>

#include "base/host_device.hpp"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
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

CHUNKIO_HOST_DEVICE inline float float_of_bits(std::uint32_t bits) noexcept {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline constexpr float kTwoTo23 = 8388608.0F;
inline constexpr std::uint32_t kTwoTo23Bits = 0x4B000000U;

/// normalized() for GPUs, which convert integers at a fraction of the rate of additions: the value
/// is put into the fraction of 2^23, which is then subtracted. That is exact, so the bits are the
/// same. \pre value < 2^23.
CHUNKIO_HOST_DEVICE inline float normalized_fast(std::uint32_t value,
                                                 ChannelScale channel) noexcept {
  return fmaf(float_of_bits(kTwoTo23Bits | value) - kTwoTo23, channel.scale, channel.bias);
}

/// The same for byte `i` of `fours`, the first of which is the lowest of the first number: a GPU
/// takes it out and puts it into the fraction in one instruction. \pre `i` is a constant there.
CHUNKIO_HOST_DEVICE inline float normalized_byte(const std::uint32_t* fours, int i,
                                                 ChannelScale channel) noexcept {
#ifdef __CUDA_ARCH__
  const auto lowest = static_cast<std::uint32_t>(i % 4);
  const std::uint32_t bits = __byte_perm(fours[i / 4], kTwoTo23Bits, 0x7440U | lowest);
  return fmaf(float_of_bits(bits) - kTwoTo23, channel.scale, channel.bias);
#else
  return normalized_fast(fours[i / 4] >> (8 * (i % 4)) & 0xFFU, channel);
#endif
}

// A GPU has an instruction for each of the two roundings.

/// The upper half, rounded to nearest, ties to even. \pre not a NaN.
CHUNKIO_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) noexcept {
#ifdef __CUDA_ARCH__
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const std::uint32_t bits = float_bits(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
#endif
}

/// IEEE binary16, rounded to nearest, ties to even; beyond 65504 infinity. \pre not a NaN.
CHUNKIO_HOST_DEVICE inline std::uint16_t to_float16(float value) noexcept {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(value));
#else
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
    const float shifted = float_of_bits(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (float_bits(shifted) - float_bits(0.5F)));
  }
  // Rounding may carry into the exponent, up to infinity, which is what it should do.
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
#endif
}

/// What an element of the output is stored as.
template <DType dtype>
struct Element;
template <>
struct Element<DType::float32> {
  using Type = float;
  CHUNKIO_HOST_DEVICE static Type of(float value) noexcept { return value; }
};
template <>
struct Element<DType::float16> {
  using Type = std::uint16_t;
  CHUNKIO_HOST_DEVICE static Type of(float value) noexcept { return to_float16(value); }
};
template <>
struct Element<DType::bfloat16> {
  using Type = std::uint16_t;
  CHUNKIO_HOST_DEVICE static Type of(float value) noexcept { return to_bfloat16(value); }
};

/// As Element<dtype>::of(), of a value that may be a NaN.
template <DType dtype>
CHUNKIO_HOST_DEVICE typename Element<dtype>::Type element_of(float value) noexcept {
  if constexpr (dtype == DType::float32) {
    return value;
  } else {
    constexpr std::uint16_t kNaN = dtype == DType::float16 ? 0x7E00 : 0x7FC0;
    return value != value ? kNaN : Element<dtype>::of(value);
  }
}

}  // namespace chunkio::device
