#include "device/line_converter_avx2.hpp"

#include <immintrin.h>

namespace chunkio::device {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kPattern = 24;

/// Eight values, normalised.
__m256 normalized(const std::uint8_t* values, __m256 scale, __m256 bias) noexcept {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), scale, bias);
}

struct ToFloat32 {
  using Value = float;
  static void store(__m256 values, float* output) noexcept { _mm256_storeu_ps(output, values); }
};

struct ToFloat16 {
  using Value = std::uint16_t;
  static void store(__m256 values, std::uint16_t* output) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

struct ToBfloat16 {
  using Value = std::uint16_t;
  static void store(__m256 values, std::uint16_t* output) noexcept {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(output),
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
  }
};

template <class To>
void convert(const std::uint8_t* values, std::size_t count, const float* scale, const float* bias,
             typename To::Value* output) noexcept {
  const __m256 scales[] = {_mm256_load_ps(scale), _mm256_load_ps(scale + kLanes),
                           _mm256_load_ps(scale + 2 * kLanes)};
  const __m256 biases[] = {_mm256_load_ps(bias), _mm256_load_ps(bias + kLanes),
                           _mm256_load_ps(bias + 2 * kLanes)};
  std::size_t done = 0;
  for (; done + kPattern <= count; done += kPattern) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t at = done + i * kLanes;
      To::store(normalized(values + at, scales[i], biases[i]), output + at);
    }
  }
  std::size_t i = 0;
  for (; done + kLanes <= count; done += kLanes, ++i) {
    To::store(normalized(values + done, scales[i], biases[i]), output + done);
  }
  if (done == count) return;
  // The rest, fewer than 8, by way of memory that holds 8.
  std::uint8_t rest[kLanes] = {};
  typename To::Value results[kLanes];
  for (std::size_t j = 0; done + j < count; ++j) rest[j] = values[done + j];
  To::store(normalized(rest, scales[i], biases[i]), results);
  for (std::size_t j = 0; done + j < count; ++j) output[done + j] = results[j];
}

/// Which bytes of part `part` (of 16) of 16 pixels belong to a channel, and where they go.
__m128i channel_mask(int part, int channel, bool flipped) noexcept {
  alignas(16) std::int8_t mask[16];
  for (int pixel = 0; pixel < 16; ++pixel) {
    const int from = 3 * pixel + channel - 16 * part;
    mask[flipped ? 15 - pixel : pixel] =
        static_cast<std::int8_t>(from >= 0 && from < 16 ? from : -1);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(mask));
}

template <bool flipped>
void split_three_channels(const std::uint8_t* pixels, std::size_t num_pixels, std::uint8_t* planes,
                          std::size_t stride) noexcept {
  constexpr std::size_t kStep = 16;
  __m128i masks[3][3];
  for (int channel = 0; channel < 3; ++channel) {
    for (int part = 0; part < 3; ++part) {
      masks[channel][part] = channel_mask(part, channel, flipped);
    }
  }
  std::size_t done = 0;
  for (; done + kStep <= num_pixels; done += kStep) {
    const auto* from = reinterpret_cast<const __m128i*>(pixels + 3 * done);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const std::size_t to = flipped ? num_pixels - kStep - done : done;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const __m128i* mask = masks[channel];
      const __m128i plane =
          _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, mask[0]), _mm_shuffle_epi8(b, mask[1])),
                       _mm_shuffle_epi8(c, mask[2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes + channel * stride + to), plane);
    }
  }
  for (; done < num_pixels; ++done) {
    const std::size_t to = flipped ? num_pixels - 1 - done : done;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      planes[channel * stride + to] = pixels[3 * done + channel];
    }
  }
}

}  // namespace

void convert_to_float32_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                             const float* bias, float* output) noexcept {
  convert<ToFloat32>(values, count, scale, bias, output);
}

void convert_to_float16_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                             const float* bias, std::uint16_t* output) noexcept {
  convert<ToFloat16>(values, count, scale, bias, output);
}

void convert_to_bfloat16_avx2(const std::uint8_t* values, std::size_t count, const float* scale,
                              const float* bias, std::uint16_t* output) noexcept {
  convert<ToBfloat16>(values, count, scale, bias, output);
}

void split_three_channels_avx2(const std::uint8_t* pixels, std::size_t num_pixels,
                               std::uint8_t* planes, std::size_t stride, bool flipped) noexcept {
  if (flipped) {
    split_three_channels<true>(pixels, num_pixels, planes, stride);
  } else {
    split_three_channels<false>(pixels, num_pixels, planes, stride);
  }
}

}  // namespace chunkio::device
