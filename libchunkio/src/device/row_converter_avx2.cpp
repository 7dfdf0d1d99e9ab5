#include "device/row_converter_avx2.hpp"

#include <immintrin.h>

namespace chunkio::device {
namespace {

constexpr std::size_t kLanes = 8;

/// Eight bytes as numbers.
__m256i widened(const std::uint8_t* values) noexcept {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(values)));
}

/// \param low, high  16 bytes each.
__m256i gathered(const std::uint8_t* low, const std::uint8_t* high, __m256i mask) noexcept {
  const auto lane = [](const std::uint8_t* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  };
  const __m256i lanes = _mm256_inserti128_si256(_mm256_castsi128_si256(lane(low)), lane(high), 1);
  return _mm256_shuffle_epi8(lanes, mask);
}

__m256i mask_of(const LaneGather& gather) noexcept {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(gather.mask));
}

__m256 normalized(__m256i values, __m256 scale, __m256 bias) noexcept {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(values), scale, bias);
}

struct ToFloat32 {
  using Value = float;
  template <bool streaming>
  static void store(__m256 values, float* output) noexcept {
    if constexpr (streaming) {
      _mm256_stream_ps(output, values);
    } else {
      _mm256_storeu_ps(output, values);
    }
  }
};

template <bool streaming>
void store_halves(__m128i halves, std::uint16_t* output) noexcept {
  auto* const to = reinterpret_cast<__m128i*>(output);
  if constexpr (streaming) {
    _mm_stream_si128(to, halves);
  } else {
    _mm_storeu_si128(to, halves);
  }
}

struct ToFloat16 {
  using Value = std::uint16_t;
  template <bool streaming>
  static void store(__m256 values, std::uint16_t* output) noexcept {
    store_halves<streaming>(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            output);
  }
};

struct ToBfloat16 {
  using Value = std::uint16_t;
  template <bool streaming>
  static void store(__m256 values, std::uint16_t* output) noexcept {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    store_halves<streaming>(
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)),
        output);
  }
};

/// Fewer than 8 values, by way of memory that holds 8.
template <class To>
void convert_few(const std::uint8_t* values, std::size_t count, __m256 scale, __m256 bias,
                 typename To::Value* output) noexcept {
  std::uint8_t eight[kLanes] = {};
  typename To::Value results[kLanes];
  for (std::size_t i = 0; i < count; ++i) eight[i] = values[i];
  To::template store<false>(normalized(widened(eight), scale, bias), results);
  for (std::size_t i = 0; i < count; ++i) output[i] = results[i];
}

/// \pre with `streaming`, output lies at the beginning of a cache line.
template <class To, bool streaming>
void convert_values(const std::uint8_t* values, std::size_t count, LineScale scale,
                    typename To::Value* output) noexcept {
  __m256 scales[3];
  __m256 biases[3];
  for (std::size_t i = 0; i < 3; ++i) {
    scales[i] = _mm256_loadu_ps(scale.scale + i * kLanes);
    biases[i] = _mm256_loadu_ps(scale.bias + i * kLanes);
  }
  std::size_t done = 0;
  for (; done + kPattern <= count; done += kPattern) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t at = done + i * kLanes;
      To::template store<streaming>(normalized(widened(values + at), scales[i], biases[i]),
                                    output + at);
    }
  }
  std::size_t i = 0;
  for (; done + kLanes <= count; done += kLanes, ++i) {
    To::template store<streaming>(normalized(widened(values + done), scales[i], biases[i]),
                                  output + done);
  }
  if (done < count) {
    convert_few<To>(values + done, count - done, scales[i], biases[i], output + done);
  }
}

/// \pre as convert_values().
template <class To, bool streaming>
void convert_channel_values(PixelRun run, std::size_t channel, bool flipped,
                            const LaneGather& gather, LineScale scale,
                            typename To::Value* output) noexcept {
  const __m256 scales = _mm256_loadu_ps(scale.scale);
  const __m256 biases = _mm256_loadu_ps(scale.bias);
  const __m256i mask = mask_of(gather);
  const std::size_t count = run.num_pixels;
  // Outside of the loop, since the stores may alias anything.
  const std::ptrdiff_t low = gather.low;
  const std::ptrdiff_t high = gather.high;
  const auto group_bytes = static_cast<std::ptrdiff_t>(kLanes * run.num_channels);
  const std::ptrdiff_t step = flipped ? -group_bytes : group_bytes;
  std::ptrdiff_t group =
      flipped ? static_cast<std::ptrdiff_t>(count * run.num_channels) - group_bytes : 0;
  std::size_t done = 0;
  for (; done + kLanes <= count; done += kLanes, group += step) {
    const __m256i values = gathered(run.pixels + (group + low), run.pixels + (group + high), mask);
    To::template store<streaming>(normalized(values, scales, biases), output + done);
  }
  if (done == count) return;
  std::uint8_t rest[kLanes];
  for (std::size_t i = done; i < count; ++i) {
    const std::size_t pixel = flipped ? count - 1 - i : i;
    rest[i - done] = run.pixels[pixel * run.num_channels + channel];
  }
  convert_few<To>(rest, count - done, scales, biases, output + done);
}

template <class To, bool streaming>
void convert_reversed_values(PixelRun run, const LaneGather* gathers, LineScale scale,
                             typename To::Value* output) noexcept {
  __m256 scales[3];
  __m256 biases[3];
  __m256i masks[3];
  for (std::size_t i = 0; i < 3; ++i) {
    scales[i] = _mm256_loadu_ps(scale.scale + i * kLanes);
    biases[i] = _mm256_loadu_ps(scale.bias + i * kLanes);
    masks[i] = mask_of(gathers[i]);
  }
  std::size_t left = run.num_pixels * run.num_channels;
  for (; left >= kPattern; left -= kPattern, output += kPattern) {
    const std::uint8_t* const group = run.pixels + left - kPattern;
    for (std::size_t i = 0; i < 3; ++i) {
      const __m256i values = gathered(group + gathers[i].low, group + gathers[i].high, masks[i]);
      To::template store<streaming>(normalized(values, scales[i], biases[i]), output + i * kLanes);
    }
  }
  std::uint8_t rest[kPattern];
  const std::size_t pixels_left = left / run.num_channels;
  for (std::size_t pixel = 0; pixel < pixels_left; ++pixel) {
    for (std::size_t channel = 0; channel < run.num_channels; ++channel) {
      rest[pixel * run.num_channels + channel] =
          run.pixels[(pixels_left - 1 - pixel) * run.num_channels + channel];
    }
  }
  convert_values<To, false>(rest, left, scale, output);
}

/// A line of `count` values at `output`: those before its first whole cache line, and those in
/// whole ones.
struct LineParts {
  std::size_t head;
  std::size_t body;
};

template <class Value>
LineParts parts_of(const Value* output, std::size_t count) noexcept {
  constexpr std::size_t kLine = kCacheLineBytes / sizeof(Value);
  const std::size_t before = reinterpret_cast<std::uintptr_t>(output) / sizeof(Value) % kLine;
  const std::size_t head = before == 0 ? 0 : kLine - before;
  if (head >= count) return {count, 0};
  return {head, (count - head) / kLine * kLine};
}

/// From value `first` of the line on.
LineScale from(LineScale scale, std::size_t first) noexcept {
  return {scale.scale + first % kPattern, scale.bias + first % kPattern};
}

template <class To>
void convert(const std::uint8_t* values, std::size_t count, LineScale scale, bool streaming,
             void* to) noexcept {
  auto* const output = static_cast<typename To::Value*>(to);
  if (!streaming) {
    convert_values<To, false>(values, count, scale, output);
    return;
  }
  const auto [head, body] = parts_of(output, count);
  const std::size_t end = head + body;
  convert_values<To, false>(values, head, scale, output);
  convert_values<To, true>(values + head, body, from(scale, head), output + head);
  convert_values<To, false>(values + end, count - end, from(scale, end), output + end);
}

template <class To>
void convert_channel(PixelRun run, std::size_t channel, bool flipped, const LaneGather& gather,
                     LineScale scale, bool streaming, void* to) noexcept {
  auto* const output = static_cast<typename To::Value*>(to);
  if (!streaming) {
    convert_channel_values<To, false>(run, channel, flipped, gather, scale, output);
    return;
  }
  const auto [head, body] = parts_of(output, run.num_pixels);
  const std::size_t end = head + body;
  // Those that become output values [first, first + count).
  const auto part = [&](std::size_t first, std::size_t count) {
    const std::size_t begin = flipped ? run.num_pixels - first - count : first;
    return PixelRun{run.pixels + begin * run.num_channels, count, run.num_channels};
  };
  convert_channel_values<To, false>(part(0, head), channel, flipped, gather, scale, output);
  convert_channel_values<To, true>(part(head, body), channel, flipped, gather, scale,
                                   output + head);
  convert_channel_values<To, false>(part(end, run.num_pixels - end), channel, flipped, gather,
                                    scale, output + end);
}

template <class To>
void convert_reversed(PixelRun run, const LaneGather* gathers, LineScale scale, bool streaming,
                      void* to) noexcept {
  auto* const output = static_cast<typename To::Value*>(to);
  const std::size_t count = run.num_pixels * run.num_channels;
  // Cache lines that are whole groups, too.
  constexpr std::size_t kStep = 3 * kCacheLineBytes / sizeof(typename To::Value);
  static_assert(kStep % kPattern == 0);
  const bool at_line = parts_of(output, kPattern).head == 0;
  const std::size_t body = streaming && at_line ? count / kStep * kStep : 0;
  const std::size_t rest = count - body;
  const auto pixels = [&](std::size_t first, std::size_t values) {
    return PixelRun{run.pixels + first, values / run.num_channels, run.num_channels};
  };
  convert_reversed_values<To, true>(pixels(rest, body), gathers, scale, output);
  convert_reversed_values<To, false>(pixels(0, rest), gathers, scale, output + body);
}

}  // namespace

const Avx2Conversion kToFloat32Avx2 = {convert<ToFloat32>, convert_channel<ToFloat32>,
                                       convert_reversed<ToFloat32>};
const Avx2Conversion kToFloat16Avx2 = {convert<ToFloat16>, convert_channel<ToFloat16>,
                                       convert_reversed<ToFloat16>};
const Avx2Conversion kToBfloat16Avx2 = {convert<ToBfloat16>, convert_channel<ToBfloat16>,
                                        convert_reversed<ToBfloat16>};

}  // namespace chunkio::device
