/// Runs of uint8 values to float32, float16 or bfloat16: with AVX2 where the processor has it, else
/// by table. Both give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/tensor.hpp>

#include "device/value.hpp"

namespace chunkio::device {

/// Immutable and thread-safe.
class LineConverter {
 public:
  enum class Instructions : std::uint8_t { portable, avx2 };

  /// The best that this processor and build have.
  [[nodiscard]] static Instructions best() noexcept;

  /// \param channels  1 to kMaxChannels.
  /// \pre dtype is float32, float16 or bfloat16.
  LineConverter(std::span<const ChannelScale> channels, DType dtype,
                Instructions instructions = best());

  /// Values of all channels by turns, from channel 0 on.
  void convert_interleaved(std::span<const std::uint8_t> values, std::byte* output) const noexcept;
  /// Values of one channel.
  void convert_plane(std::size_t channel, std::span<const std::uint8_t> values,
                     std::byte* output) const noexcept;
  /// Brings pixels of the channels by turns, uint8 [n,C], to planes that lie `stride` bytes apart,
  /// [C,n]; in reverse order if `flipped`.
  void split_channels(std::span<const std::uint8_t> pixels, std::uint8_t* planes,
                      std::size_t stride, bool flipped) const noexcept;

  [[nodiscard]] DType dtype() const noexcept { return dtype_; }

  /// As many values as both a vector of 8 and a pixel of any number of channels divide.
  static constexpr std::size_t kPattern = 24;
  /// Scales of kPattern values in a row.
  struct Pattern {
    alignas(32) std::array<float, kPattern> scale{};
    alignas(32) std::array<float, kPattern> bias{};
  };

 private:
  std::size_t num_channels_;
  DType dtype_;
  Instructions instructions_;
  Pattern interleaved_;
  std::array<Pattern, kMaxChannels> planes_;
  std::vector<std::uint32_t> table_;  // [C][256]: what each value becomes, in its low bytes
};

}  // namespace chunkio::device
