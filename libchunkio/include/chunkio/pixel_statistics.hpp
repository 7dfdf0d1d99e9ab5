/// Mean and standard deviation of each channel, computed while images are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// Sums over uint8 pixels, in integers: the result does not depend on order or threads, and is
/// exact but for the deviation within images, which is summed in steps of 2^-20. One for each
/// thread, merged at the end. Good for 2^48 pixels, the sums of squares of which just fit in 64
/// bits, and 2^36 images. Not thread-safe.
class CHUNKIO_EXPORT PixelStatistics {
 public:
  /// \pre channels >= 1.
  PixelStatistics(std::int64_t channels, Layout layout);

  /// Adds one image, [H,W,C] or [C,H,W] by the layout.
  void add(std::span<const std::uint8_t> image) noexcept;
  /// \pre as many channels.
  void merge(const PixelStatistics& other) noexcept;

  [[nodiscard]] std::uint64_t num_images() const noexcept { return images_; }
  /// Population mean and standard deviation on the scale 0..1. Zeros before the first image.
  [[nodiscard]] ChannelStatistics result() const;
  /// The mean over all images of the standard deviation within each, on the scale 0..1: smaller
  /// than the deviation over all pixels, as it leaves out how images differ from each other.
  [[nodiscard]] std::vector<double> mean_picture_std() const;

  /// The sums as numbers, and back.
  [[nodiscard]] std::vector<std::uint64_t> values() const;
  /// \throws Error corrupt_data: not the values of as many channels.
  void restore(std::span<const std::uint64_t> values);

 private:
  struct Sums {
    std::uint64_t values = 0;
    std::uint64_t squares = 0;
    std::uint64_t deviations = 0;  ///< Standard deviations of images, 0..255, in steps of 2^-20.
  };

  void add_channel(Sums& sums, std::uint64_t pixels, std::uint64_t values,
                   std::uint64_t squares) noexcept;

  Layout layout_;
  std::uint64_t images_ = 0;
  std::uint64_t pixels_ = 0;
  std::vector<Sums> channels_;
};

}  // namespace chunkio
