/// Mean and standard deviation of each channel, computed while packing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// Sums over uint8 pixels, in integers: the result does not depend on order or threads, and is
/// exact but for the deviation within pictures, which is summed in steps of 2^-20. One for each
/// thread, merged at the end. Good for 2^48 pixels, the sums of squares of which just fit in 64
/// bits, and 2^36 pictures.
class PixelStatistics {
 public:
  static constexpr std::size_t kMaxChannels = 3;

  /// \pre channels is 1 or 3.
  PixelStatistics(std::int64_t channels, chunkio::Layout layout) noexcept
      : channels_(static_cast<std::size_t>(channels)), layout_(layout) {}

  /// Adds one picture, [H,W,C] or [C,H,W] by the layout.
  void add(std::span<const std::uint8_t> picture) noexcept;
  void merge(const PixelStatistics& other) noexcept;

  [[nodiscard]] std::uint64_t num_pictures() const noexcept { return pictures_; }
  /// Population mean and standard deviation on the scale 0..1. Zeros before the first picture.
  [[nodiscard]] chunkio::ChannelStatistics result() const;
  /// The mean over all pictures of the standard deviation within each, on the scale 0..1: smaller
  /// than the deviation over all pixels, as it leaves out how pictures differ from each other.
  [[nodiscard]] std::vector<double> mean_picture_std() const;

  /// The sums as numbers, and back.
  [[nodiscard]] std::vector<std::uint64_t> values() const;
  /// \throws Error corrupt_data: not the values of as many channels.
  void restore(std::span<const std::uint64_t> values);

 private:
  using Sums = std::array<std::uint64_t, kMaxChannels>;

  std::size_t channels_;
  chunkio::Layout layout_;
  std::uint64_t pictures_ = 0;
  std::uint64_t pixels_ = 0;
  Sums sums_{};
  Sums squares_{};
  Sums deviations_{};  // Standard deviations of pictures, 0..255, in steps of 2^-20.
};

/// Of pictures of `picture_bytes` that lie one behind the other, on the threads of the TBB arena.
/// Of all of them, also where the work around it is cancelled meanwhile.
/// \param none  no pictures, with their channels and layout.
[[nodiscard]] PixelStatistics statistics_of(std::span<const std::uint8_t> pictures,
                                            std::size_t picture_bytes, const PixelStatistics& none);

}  // namespace h5pack
