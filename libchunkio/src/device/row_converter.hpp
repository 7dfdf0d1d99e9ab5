/// Runs of uint8 values to float32, float16 or bfloat16: with AVX2 where the processor has it, else
/// by table. Both give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/tensor.hpp>

#include "base/streaming_copy.hpp"
#include "device/row_converter_avx2.hpp"
#include "device/value.hpp"

namespace chunkio::device {

/// How outputs get to memory. With AVX2, lines of kMinStreamedBytes or of whole cache lines
/// bypass the cache if they are to: faster where they would not stay in it. Of lines in reverse
/// order only those that begin with a cache line, unless they are of one channel of several.
using base::Stores;

/// A cache line that is stored partly bypassing the cache, as at the ends of a line, costs more
/// than one saves that is stored whole.
inline constexpr std::int64_t kMinStreamedBytes = std::int64_t{16} << 10;

/// Outputs are aligned to their type. Immutable and thread-safe.
class RowConverter {
 public:
  enum class Instructions : std::uint8_t { portable, avx2 };

  /// The best that this processor and build have.
  [[nodiscard]] static Instructions best() noexcept;

  /// \param channels  1 to kMaxChannels.
  /// \pre dtype is float32, float16 or bfloat16.
  RowConverter(std::span<const ChannelScale> channels, DType dtype,
               Instructions instructions = best());

  /// Pixels uint8 [n,C] to [n,C], in reverse order if `reversed`.
  void convert_pixels(std::span<const std::uint8_t> pixels, bool reversed, Stores stores,
                      std::byte* output) const noexcept;
  /// One channel of pixels uint8 [n,C] to [n], in reverse order if `reversed`.
  void convert_channel(std::size_t channel, std::span<const std::uint8_t> pixels, bool reversed,
                       Stores stores, std::byte* output) const noexcept;
  /// Values of one channel, in reverse order if `reversed`.
  void convert_plane(std::size_t channel, std::span<const std::uint8_t> values, bool reversed,
                     Stores stores, std::byte* output) const noexcept;

 private:
  /// Scales of values in a row: twice, so that a line can begin with any of them.
  struct Pattern {
    std::array<float, 2 * kPattern> scale{};
    std::array<float, 2 * kPattern> bias{};

    void set(std::size_t i, ChannelScale channel) noexcept;
    [[nodiscard]] LineScale line() const noexcept { return {scale.data(), bias.data()}; }
  };

  void prepare_avx2(std::span<const ChannelScale> channels);
  [[nodiscard]] const std::uint32_t* table(std::size_t channel) const noexcept {
    return table_.data() + channel * 256;
  }

  std::size_t num_channels_;
  DType dtype_;
  Instructions instructions_;
  // By table.
  std::vector<std::uint32_t> table_;  // [C][256]: what each value becomes, in its low bytes
  // By AVX2.
  const Avx2Conversion* avx2_ = nullptr;
  Pattern interleaved_;
  std::array<Pattern, kMaxChannels> planes_;
  using Reversal = std::array<LaneGather, 3>;  // 24 values of pixels in reverse order
  static Reversal reversal(std::size_t num_channels) noexcept;
  Reversal reversed_pixels_{};
  Reversal reversed_values_{};
  std::array<std::array<LaneGather, 2>, kMaxChannels> channels_{};  // 8 of one channel; reversed
};

}  // namespace chunkio::device
