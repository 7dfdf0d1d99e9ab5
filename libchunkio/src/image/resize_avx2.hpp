/// The AVX2 side of ResizePlan. Compiled for processors that may not be the one that runs, so it
/// includes nothing whose inline functions another file could end up calling.
///
/// A weight of 22 bits does not fit into the multiplication of 16-bit numbers that processors are
/// fastest at, and that adds pairs of products (_mm256_madd_epi16). So it is split: `high` 2^11 +
/// `low`. What comes out is the same sum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkio::image {

/// Rows that are resized at a time: two in each vector, and the weights are loaded once for all.
inline constexpr std::size_t kRowGroup = 4;
inline constexpr int kWeightBits = 22;
inline constexpr int kLowBits = 11;

/// Pairs of taps are weighted in steps: as many at a time as 16 bytes of 16-bit values have of all
/// channels. By channels - 1.
inline constexpr std::size_t kStepPairs[4] = {4, 2, 1, 1};
inline constexpr std::size_t kStepBytes[4] = {8, 8, 6, 8};
/// Bytes of a row are loaded for two steps at a time.
inline constexpr std::size_t kLoadBytes = 16;

struct Avx2RowsPass {
  /// [num_outputs]: where in a row the taps begin.
  const std::int32_t* offsets;
  /// [num_outputs][num_steps][high, low][kStepPairs]: two weights each, the first in the low half.
  const std::uint32_t* pairs;
  std::size_t num_outputs;
  std::size_t num_steps;
};

/// kRowGroup rows to as many outputs. From each offset on it reads kLoadBytes for each two steps.
using Avx2RowsFunction = void (*)(const Avx2RowsPass& pass, const std::uint8_t* const* rows,
                                  std::uint8_t* const* outputs) noexcept;
/// By channels - 1.
extern const Avx2RowsFunction kResizeRowsAvx2[4];

/// Rows that lie `stride` bytes apart, the one at `end` being that at `begin`.
struct TapRows {
  const std::uint8_t* first;
  const std::uint8_t* begin;
  const std::uint8_t* end;
  std::size_t stride;
};

/// One row of `num_bytes` from `num_taps` rows.
/// \param pairs  [ceil(num_taps / 2)][high, low]: two weights each, the first in the low half.
void resize_column_avx2(const TapRows& rows, const std::uint32_t* pairs, std::size_t num_taps,
                        std::size_t num_bytes, std::uint8_t* output) noexcept;

}  // namespace chunkio::image
