/// Mean and standard deviation of each channel, computed while packing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// Sums over uint8 pixels, in integers: the result is exact and does not depend on order or
/// threads. One for each thread, merged at the end. Good for 2^48 pixels, the sums of squares of
/// which just fit in 64 bits.
class PixelStatistics {
 public:
  static constexpr std::size_t kMaxChannels = 3;

  /// \pre channels is 1 or 3.
  PixelStatistics(std::int64_t channels, chunkio::Layout layout) noexcept
      : channels_(static_cast<std::size_t>(channels)), layout_(layout) {}

  /// Adds one picture, [H,W,C] or [C,H,W] by the layout.
  void add(std::span<const std::uint8_t> picture) noexcept;
  void merge(const PixelStatistics& other) noexcept;

  /// Population mean and standard deviation on the scale 0..1. Zeros before the first picture.
  [[nodiscard]] chunkio::ChannelStatistics result() const;

 private:
  std::size_t channels_;
  chunkio::Layout layout_;
  std::uint64_t pixels_ = 0;
  std::array<std::uint64_t, kMaxChannels> sums_{};
  std::array<std::uint64_t, kMaxChannels> squares_{};
};

}  // namespace h5pack
