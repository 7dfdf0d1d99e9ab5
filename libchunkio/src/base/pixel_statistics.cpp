#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

namespace chunkio {

namespace {

__extension__ using UInt128 = unsigned __int128;

/// Adds interleaved samples of `Channels` channels. Blocks of 16 pixels: lane l of a block always
/// belongs to channel l % Channels, so that the loop over lanes vectorises without sorting channels
/// apart. Squares are taken in 16 bits, which every vector unit multiplies.
template <std::size_t Channels>
void add_interleaved(std::span<const std::uint8_t> samples, std::uint64_t* sums,
                     std::uint64_t* squares) noexcept {
  constexpr std::size_t kLanes = 16 * Channels;
  constexpr std::size_t kMaxBlocks = 256;  // 255 * 256 < 2^16
  while (samples.size() >= kLanes) {
    std::array<std::uint16_t, kLanes> lane_sums{};
    std::array<std::uint32_t, kLanes> lane_squares{};
    const std::size_t blocks = std::min(samples.size() / kLanes, kMaxBlocks);
    const std::uint8_t* block = samples.data();
    for (std::size_t b = 0; b < blocks; ++b, block += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const std::uint16_t value = block[l];
        lane_sums[l] = static_cast<std::uint16_t>(lane_sums[l] + value);
        lane_squares[l] += static_cast<std::uint16_t>(value * value);
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

constexpr double kDeviationSteps = 1 << 20;

/// n^2 times the variance of n values, exact: nothing cancels.
double scaled_variance(std::uint64_t count, std::uint64_t sum, std::uint64_t squares) noexcept {
  return static_cast<double>(static_cast<UInt128>(count) * squares -
                             static_cast<UInt128>(sum) * sum);
}

}  // namespace

PixelStatistics::PixelStatistics(std::int64_t channels, Layout layout)
    : layout_(layout), channels_(static_cast<std::size_t>(channels)) {}

void PixelStatistics::add_channel(Sums& sums, std::uint64_t pixels, std::uint64_t values,
                                  std::uint64_t squares) noexcept {
  sums.values += values;
  sums.squares += squares;
  const double deviation =
      std::sqrt(scaled_variance(pixels, values, squares)) / static_cast<double>(pixels);
  sums.deviations += static_cast<std::uint64_t>(std::llround(deviation * kDeviationSteps));
}

void PixelStatistics::add(std::span<const std::uint8_t> image) noexcept {
  const std::size_t pixels = image.size() / channels_.size();
  ++images_;
  pixels_ += pixels;
  if (layout_ == Layout::nhwc && channels_.size() == 3) {
    std::array<std::uint64_t, 3> values{};
    std::array<std::uint64_t, 3> squares{};
    add_interleaved<3>(image, values.data(), squares.data());
    for (std::size_t c = 0; c < 3; ++c) add_channel(channels_[c], pixels, values[c], squares[c]);
    return;
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    std::uint64_t values = 0;
    std::uint64_t squares = 0;
    if (layout_ == Layout::nchw || channels_.size() == 1) {
      add_interleaved<1>(image.subspan(c * pixels, pixels), &values, &squares);
    } else {
      for (std::size_t i = c; i < image.size(); i += channels_.size()) {
        const auto value = static_cast<std::uint64_t>(image[i]);
        values += value;
        squares += value * value;
      }
    }
    add_channel(channels_[c], pixels, values, squares);
  }
}

void PixelStatistics::merge(const PixelStatistics& other) noexcept {
  images_ += other.images_;
  pixels_ += other.pixels_;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    channels_[c].values += other.channels_[c].values;
    channels_[c].squares += other.channels_[c].squares;
    channels_[c].deviations += other.channels_[c].deviations;
  }
}

ChannelStatistics PixelStatistics::result() const {
  ChannelStatistics statistics;
  const double count = std::max(static_cast<double>(pixels_), 1.0);
  for (const Sums& channel : channels_) {
    statistics.mean.push_back(static_cast<double>(channel.values) / count / 255.0);
    statistics.std.push_back(std::sqrt(scaled_variance(pixels_, channel.values, channel.squares)) /
                             count / 255.0);
  }
  return statistics;
}

std::vector<double> PixelStatistics::mean_picture_std() const {
  std::vector<double> mean;
  for (const Sums& channel : channels_) {
    mean.push_back(static_cast<double>(channel.deviations) / kDeviationSteps /
                   std::max(static_cast<double>(images_), 1.0) / 255.0);
  }
  return mean;
}

std::vector<std::uint64_t> PixelStatistics::values() const {
  std::vector<std::uint64_t> values{images_, pixels_};
  for (const auto sum : {&Sums::values, &Sums::squares, &Sums::deviations}) {
    for (const Sums& channel : channels_) values.push_back(channel.*sum);
  }
  return values;
}

void PixelStatistics::restore(std::span<const std::uint64_t> values) {
  if (values.size() != 2 + 3 * channels_.size()) {
    throw Error(ErrorCode::corrupt_data, "the sums of pixels are not those of " +
                                             std::to_string(channels_.size()) + " channels");
  }
  images_ = values[0];
  pixels_ = values[1];
  std::size_t next = 2;
  for (const auto sum : {&Sums::values, &Sums::squares, &Sums::deviations}) {
    for (Sums& channel : channels_) channel.*sum = values[next++];
  }
}

}  // namespace chunkio
