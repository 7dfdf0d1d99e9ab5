#include "pixel_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace h5pack {

namespace {

__extension__ using UInt128 = unsigned __int128;

/// Adds interleaved samples of `Channels` channels. Blocks of 16 pixels: lane l of a block always
/// belongs to channel l % Channels, so that the loop over lanes vectorises without sorting channels
/// apart.
template <std::size_t Channels>
void add_interleaved(std::span<const std::uint8_t> samples, std::uint64_t* sums,
                     std::uint64_t* squares) noexcept {
  constexpr std::size_t kLanes = 16 * Channels;
  constexpr std::size_t kMaxBlocks = 65536;  // 255 * 255 * 65536 < 2^32
  while (samples.size() >= kLanes) {
    std::array<std::uint32_t, kLanes> lane_sums{};
    std::array<std::uint32_t, kLanes> lane_squares{};
    const std::size_t blocks = std::min(samples.size() / kLanes, kMaxBlocks);
    const std::uint8_t* block = samples.data();
    for (std::size_t b = 0; b < blocks; ++b, block += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const auto value = static_cast<std::uint32_t>(block[l]);
        lane_sums[l] += value;
        lane_squares[l] += value * value;
      }
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      sums[l % Channels] += lane_sums[l];
      squares[l % Channels] += lane_squares[l];
    }
    samples = samples.subspan(blocks * kLanes);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto value = static_cast<std::uint64_t>(samples[i]);
    sums[i % Channels] += value;
    squares[i % Channels] += value * value;
  }
}

}  // namespace

void PixelStatistics::add(std::span<const std::uint8_t> picture) noexcept {
  const std::size_t pixels = picture.size() / channels_;
  pixels_ += pixels;
  if (layout_ == chunkio::Layout::nhwc && channels_ == 3) {
    add_interleaved<3>(picture, sums_.data(), squares_.data());
    return;
  }
  for (std::size_t c = 0; c < channels_; ++c) {
    add_interleaved<1>(picture.subspan(c * pixels, pixels), &sums_[c], &squares_[c]);
  }
}

void PixelStatistics::merge(const PixelStatistics& other) noexcept {
  pixels_ += other.pixels_;
  for (std::size_t c = 0; c < kMaxChannels; ++c) {
    sums_[c] += other.sums_[c];
    squares_[c] += other.squares_[c];
  }
}

chunkio::ChannelStatistics PixelStatistics::result() const {
  chunkio::ChannelStatistics statistics;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double count = std::max(static_cast<double>(pixels_), 1.0);
    // n * sum of squares - (sum)^2 = n^2 * variance, exact in 128 bits: nothing cancels.
    const UInt128 scaled =
        static_cast<UInt128>(pixels_) * squares_[c] - static_cast<UInt128>(sums_[c]) * sums_[c];
    statistics.mean.push_back(static_cast<double>(sums_[c]) / count / 255.0);
    statistics.std.push_back(std::sqrt(static_cast<double>(scaled)) / count / 255.0);
  }
  return statistics;
}

}  // namespace h5pack
