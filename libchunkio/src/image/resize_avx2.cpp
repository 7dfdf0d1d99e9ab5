#include "image/resize_avx2.hpp"

#include <immintrin.h>

#include <cstring>

namespace chunkio::image {
namespace {

__m128i load16(const std::uint8_t* bytes) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

/// 16 bytes of two rows, one in each half.
__m256i load_rows(const std::uint8_t* low, const std::uint8_t* high) noexcept {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

/// Half of what is shifted out of sums, so that they are rounded.
__m256i half() noexcept { return _mm256_set1_epi32(1 << (kWeightBits - 1)); }

/// Sums of products with high and with low parts of weights.
struct Sums {
  __m256i high = _mm256_setzero_si256();
  __m256i low = half();

  void add(__m256i values, __m256i high_weights, __m256i low_weights) noexcept {
    high = _mm256_add_epi32(high, _mm256_madd_epi16(values, high_weights));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(values, low_weights));
  }
  [[nodiscard]] __m256i total() const noexcept {
    return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
  }
};

__m256i rounded(__m256i total) noexcept { return _mm256_srli_epi32(total, kWeightBits); }

/// The weights of a step, in either half, each for the 32-bit number of its pair and channel.
template <std::size_t channels>
__m256i step_weights(const std::uint32_t* pairs) noexcept {
  if constexpr (channels == 1) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pairs)));
  } else if constexpr (channels == 2) {
    std::int64_t both = 0;
    std::memcpy(&both, pairs, sizeof both);
    return _mm256_shuffle_epi32(_mm256_set1_epi64x(both), _MM_SHUFFLE(1, 1, 0, 0));
  } else {
    std::int32_t pair = 0;
    std::memcpy(&pair, pairs, sizeof pair);
    return _mm256_set1_epi32(pair);
  }
}

/// Makes 16-bit numbers of the bytes of a step, the values of a channel in a pair of taps side by
/// side. \param step  0 or 1, of a load.
template <std::size_t channels>
__m256i step_mask(std::size_t step) noexcept {
  alignas(16) std::int8_t mask[16];
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t pair = i / channels;
    const std::size_t channel = i % channels;
    for (std::size_t tap = 0; tap < 2; ++tap) {
      const std::size_t byte =
          step * kStepBytes[channels - 1] + (2 * pair + tap) * channels + channel;
      // The fourth number of three channels is nobody's.
      const bool is_used = pair < kStepPairs[channels - 1];
      mask[4 * i + 2 * tap] = is_used ? static_cast<std::int8_t>(byte) : std::int8_t{-1};
      mask[4 * i + 2 * tap + 1] = -1;
    }
  }
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(mask)));
}

/// One output pixel of two pairs of rows: its channels in the low half are those of the first rows.
template <std::size_t channels>
struct PixelSums {
  static constexpr std::size_t kPairs = kStepPairs[channels - 1];

  Sums first;   // rows 0 and 1
  Sums second;  // rows 2 and 3

  void add(__m256i first_values, __m256i second_values, const std::uint32_t* pairs) noexcept {
    const __m256i high = step_weights<channels>(pairs);
    const __m256i low = step_weights<channels>(pairs + kPairs);
    first.add(first_values, high, low);
    second.add(second_values, high, low);
  }
};

/// The same of any number of steps: kSteps, or `num_steps` if that is 0.
template <std::size_t channels, std::size_t kSteps>
PixelSums<channels> pixel_sums(const std::uint8_t* const* rows, std::size_t offset,
                               const std::uint32_t* pairs, std::size_t num_steps,
                               __m256i first_mask, __m256i second_mask) noexcept {
  constexpr std::size_t kStepWords = 2 * kStepPairs[channels - 1];
  const std::size_t steps = kSteps != 0 ? kSteps : num_steps;
  PixelSums<channels> sums;
  for (std::size_t step = 0; step < steps; step += 2) {
    const __m256i first = load_rows(rows[0] + offset, rows[1] + offset);
    const __m256i second = load_rows(rows[2] + offset, rows[3] + offset);
    sums.add(_mm256_shuffle_epi8(first, first_mask), _mm256_shuffle_epi8(second, first_mask),
             pairs);
    if (step + 1 < steps) {
      sums.add(_mm256_shuffle_epi8(first, second_mask), _mm256_shuffle_epi8(second, second_mask),
               pairs + kStepWords);
    }
    offset += 2 * kStepBytes[channels - 1];
    pairs += 2 * kStepWords;
  }
  return sums;
}

/// The values of a pixel as 16-bit numbers, four of each row: those of rows 0 and 2 in the low
/// half, those of rows 1 and 3 in the high half.
template <std::size_t channels>
__m256i pixel_values(const PixelSums<channels>& sums) noexcept {
  __m256i first = sums.first.total();
  __m256i second = sums.second.total();
  if constexpr (channels <= 2) {
    // The pairs of a step, of which each sum has a half of its own.
    const auto with_other_half = [](__m256i sums_of_pairs) {
      const __m256i swapped = _mm256_shuffle_epi32(sums_of_pairs, _MM_SHUFFLE(1, 0, 3, 2));
      return _mm256_add_epi32(sums_of_pairs, _mm256_sub_epi32(swapped, half()));
    };
    first = with_other_half(first);
    second = with_other_half(second);
    if constexpr (channels == 1) {
      const auto with_neighbour = [](__m256i sums_of_pairs) {
        const __m256i swapped = _mm256_shuffle_epi32(sums_of_pairs, _MM_SHUFFLE(2, 3, 0, 1));
        return _mm256_add_epi32(sums_of_pairs, _mm256_sub_epi32(swapped, half()));
      };
      first = with_neighbour(first);
      second = with_neighbour(second);
    }
  }
  return _mm256_packs_epi32(rounded(first), rounded(second));
}

/// Of the bytes of two pixels, four of each row and pixel, makes 8 bytes of each row, which begin
/// with its pixels.
template <std::size_t channels>
__m256i two_pixels_mask() noexcept {
  alignas(16) std::int8_t mask[16] = {};
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 2 * channels; ++i) {
      mask[8 * row + i] = static_cast<std::int8_t>(4 * row + i / channels * 8 + i % channels);
    }
  }
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(mask)));
}

/// Bytes of each row from the 8 that there are: of rows 0 and 2 in the low half, of rows 1 and 3 in
/// the high half.
template <std::size_t num_bytes>
void store_pixels(__m256i pixels, std::size_t at, std::uint8_t* const* outputs) noexcept {
  const __m128i even = _mm256_castsi256_si128(pixels);
  const __m128i odd = _mm256_extracti128_si256(pixels, 1);
  const auto store = [&](std::size_t row, std::int64_t bytes) {
    std::memcpy(outputs[row] + at, &bytes, num_bytes);
  };
  store(0, _mm_cvtsi128_si64(even));
  store(1, _mm_cvtsi128_si64(odd));
  store(2, _mm_extract_epi64(even, 1));
  store(3, _mm_extract_epi64(odd, 1));
}

template <std::size_t channels, std::size_t kSteps>
void resize_rows_in(const Avx2RowsPass& pass, const std::uint8_t* const* row_pointers,
                    std::uint8_t* const* output_pointers) noexcept {
  // Of their own, since the stores may alias anything.
  const std::uint8_t* const rows[kRowGroup] = {row_pointers[0], row_pointers[1], row_pointers[2],
                                               row_pointers[3]};
  std::uint8_t* const outputs[kRowGroup] = {output_pointers[0], output_pointers[1],
                                            output_pointers[2], output_pointers[3]};
  const __m256i first_mask = step_mask<channels>(0);
  const __m256i second_mask = step_mask<channels>(1);
  const std::size_t num_steps = kSteps != 0 ? kSteps : pass.num_steps;
  const std::size_t pixel_words = num_steps * 2 * kStepPairs[channels - 1];
  const std::int32_t* const offsets = pass.offsets;
  const std::uint32_t* const pairs = pass.pairs;
  const auto values = [&](std::size_t i) {
    return pixel_values(pixel_sums<channels, kSteps>(rows, static_cast<std::size_t>(offsets[i]),
                                                     pairs + i * pixel_words, num_steps, first_mask,
                                                     second_mask));
  };
  const __m256i mask = two_pixels_mask<channels>();
  const auto bytes = [&](__m256i first, __m256i second) {
    return _mm256_shuffle_epi8(_mm256_packus_epi16(first, second), mask);
  };
  // What is stored beyond two pixels is nothing yet: the next ones come on top of it.
  std::size_t i = 0;
  for (; i * channels + 8 <= pass.num_outputs * channels; i += 2) {
    store_pixels<8>(bytes(values(i), values(i + 1)), i * channels, outputs);
  }
  for (; i < pass.num_outputs; ++i) {
    const __m256i last = values(i);
    store_pixels<channels>(bytes(last, last), i * channels, outputs);
  }
}

template <std::size_t channels>
void resize_rows(const Avx2RowsPass& pass, const std::uint8_t* const* rows,
                 std::uint8_t* const* outputs) noexcept {
  switch (pass.num_steps) {
    case 1:
      return resize_rows_in<channels, 1>(pass, rows, outputs);
    case 2:
      return resize_rows_in<channels, 2>(pass, rows, outputs);
    case 3:
      return resize_rows_in<channels, 3>(pass, rows, outputs);
    case 4:
      return resize_rows_in<channels, 4>(pass, rows, outputs);
    default:
      return resize_rows_in<channels, 0>(pass, rows, outputs);
  }
}

const std::uint8_t* next_row(const TapRows& rows, const std::uint8_t* row) noexcept {
  const std::uint8_t* const next = row + rows.stride;
  return next == rows.end ? rows.begin : next;
}

/// Calls add(row, next, high, low) for each pair of taps.
template <class Add>
void for_each_pair(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                   const Add& add) noexcept {
  const std::uint8_t* row = rows.first;
  for (std::size_t tap = 0; tap < num_taps; tap += 2, pairs += 2) {
    // The last one may be alone: its partner's weight is 0, and there may be no such row.
    const std::uint8_t* const partner = tap + 1 < num_taps ? next_row(rows, row) : row;
    add(row, partner, _mm256_set1_epi32(static_cast<std::int32_t>(pairs[0])),
        _mm256_set1_epi32(static_cast<std::int32_t>(pairs[1])));
    row = next_row(rows, partner);
  }
}

/// 32 bytes of the output.
void resize_column_32(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                      std::size_t at, std::uint8_t* output) noexcept {
  Sums sums[4];
  for_each_pair(
      rows, pairs, num_taps,
      [&](const std::uint8_t* row, const std::uint8_t* partner, __m256i high, __m256i low) {
        const auto load = [at](const std::uint8_t* bytes) {
          return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at));
        };
        const __m256i zero = _mm256_setzero_si256();
        const __m256i first = load(row);
        const __m256i second = load(partner);
        const __m256i even = _mm256_unpacklo_epi8(first, second);
        const __m256i odd = _mm256_unpackhi_epi8(first, second);
        sums[0].add(_mm256_unpacklo_epi8(even, zero), high, low);
        sums[1].add(_mm256_unpackhi_epi8(even, zero), high, low);
        sums[2].add(_mm256_unpacklo_epi8(odd, zero), high, low);
        sums[3].add(_mm256_unpackhi_epi8(odd, zero), high, low);
      });
  const auto words = [&](std::size_t i) {
    return _mm256_packs_epi32(rounded(sums[i].total()), rounded(sums[i + 1].total()));
  };
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(output + at),
                      _mm256_packus_epi16(words(0), words(2)));
}

/// 8 bytes of the output.
void resize_column_8(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                     std::size_t at, std::uint8_t* output) noexcept {
  Sums sums;
  for_each_pair(
      rows, pairs, num_taps,
      [&](const std::uint8_t* row, const std::uint8_t* partner, __m256i high, __m256i low) {
        const auto load = [at](const std::uint8_t* bytes) {
          return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + at));
        };
        sums.add(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(load(row), load(partner))), high, low);
      });
  const __m256i total = rounded(sums.total());
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(output + at), _mm_packus_epi16(words, words));
}

/// A number of bytes below 8, one by one.
void resize_column_few(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                       std::size_t num_bytes, std::uint8_t* output) noexcept {
  for (std::size_t i = 0; i < num_bytes; ++i) {
    std::uint32_t sum = 1U << (kWeightBits - 1);
    const std::uint8_t* row = rows.first;
    for (std::size_t tap = 0; tap < num_taps; ++tap, row = next_row(rows, row)) {
      const std::uint32_t* const pair = pairs + tap / 2 * 2;
      const std::size_t shift = tap % 2 * 16;
      const std::uint32_t weight =
          ((pair[0] >> shift & 0xFFFF) << kLowBits) + (pair[1] >> shift & 0xFFFF);
      sum += weight * row[i];
    }
    const std::uint32_t value = sum >> kWeightBits;
    output[i] = static_cast<std::uint8_t>(value < 255 ? value : 255);
  }
}

}  // namespace

const Avx2RowsFunction kResizeRowsAvx2[4] = {resize_rows<1>, resize_rows<2>, resize_rows<3>,
                                             resize_rows<4>};

void resize_column_avx2(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                        std::size_t num_bytes, std::uint8_t* output) noexcept {
  if (num_bytes < 8) {
    resize_column_few(rows, pairs, num_taps, num_bytes, output);
    return;
  }
  std::size_t at = 0;
  for (; at + 32 <= num_bytes; at += 32) resize_column_32(rows, pairs, num_taps, at, output);
  for (; at + 8 <= num_bytes; at += 8) resize_column_8(rows, pairs, num_taps, at, output);
  // What is left, with some of what is done already.
  if (at < num_bytes) resize_column_8(rows, pairs, num_taps, num_bytes - 8, output);
}

}  // namespace chunkio::image
