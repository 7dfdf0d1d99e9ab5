#include "pixel_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_group.h>

#include <chunkio/error.hpp>

namespace h5pack {

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

void PixelStatistics::add(std::span<const std::uint8_t> picture) noexcept {
  const std::size_t pixels = picture.size() / channels_;
  Sums sums{};
  Sums squares{};
  if (layout_ == chunkio::Layout::nhwc && channels_ == 3) {
    add_interleaved<3>(picture, sums.data(), squares.data());
  } else {
    for (std::size_t c = 0; c < channels_; ++c) {
      add_interleaved<1>(picture.subspan(c * pixels, pixels), &sums[c], &squares[c]);
    }
  }
  ++pictures_;
  pixels_ += pixels;
  for (std::size_t c = 0; c < channels_; ++c) {
    sums_[c] += sums[c];
    squares_[c] += squares[c];
    const double deviation =
        std::sqrt(scaled_variance(pixels, sums[c], squares[c])) / static_cast<double>(pixels);
    deviations_[c] += static_cast<std::uint64_t>(std::llround(deviation * kDeviationSteps));
  }
}

void PixelStatistics::merge(const PixelStatistics& other) noexcept {
  pictures_ += other.pictures_;
  pixels_ += other.pixels_;
  for (std::size_t c = 0; c < kMaxChannels; ++c) {
    sums_[c] += other.sums_[c];
    squares_[c] += other.squares_[c];
    deviations_[c] += other.deviations_[c];
  }
}

chunkio::ChannelStatistics PixelStatistics::result() const {
  chunkio::ChannelStatistics statistics;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double count = std::max(static_cast<double>(pixels_), 1.0);
    statistics.mean.push_back(static_cast<double>(sums_[c]) / count / 255.0);
    statistics.std.push_back(std::sqrt(scaled_variance(pixels_, sums_[c], squares_[c])) / count /
                             255.0);
  }
  return statistics;
}

std::vector<double> PixelStatistics::mean_picture_std() const {
  std::vector<double> mean;
  for (std::size_t c = 0; c < channels_; ++c) {
    mean.push_back(static_cast<double>(deviations_[c]) / kDeviationSteps /
                   std::max(static_cast<double>(pictures_), 1.0) / 255.0);
  }
  return mean;
}

std::vector<std::uint64_t> PixelStatistics::values() const {
  std::vector<std::uint64_t> values{pictures_, pixels_};
  for (const Sums* sums : {&sums_, &squares_, &deviations_}) {
    values.insert(values.end(), sums->begin(),
                  sums->begin() + static_cast<std::ptrdiff_t>(channels_));
  }
  return values;
}

void PixelStatistics::restore(std::span<const std::uint64_t> values) {
  if (values.size() != 2 + 3 * channels_) {
    throw chunkio::Error(
        chunkio::ErrorCode::corrupt_data,
        "the sums of pixels are not those of " + std::to_string(channels_) + " channels");
  }
  pictures_ = values[0];
  pixels_ = values[1];
  std::size_t next = 2;
  for (Sums* sums : {&sums_, &squares_, &deviations_}) {
    for (std::size_t c = 0; c < channels_; ++c) (*sums)[c] = values[next++];
  }
}

PixelStatistics statistics_of(std::span<const std::uint8_t> pictures, std::size_t picture_bytes,
                              const PixelStatistics& none) {
  constexpr std::size_t kPicturesOfATask = 64;
  // What is bound to work that is cancelled ends with a part of the sums, and tells nobody.
  tbb::task_group_context whole(tbb::task_group_context::isolated);
  return tbb::parallel_reduce(
      tbb::blocked_range<std::size_t>(0, pictures.size() / picture_bytes, kPicturesOfATask), none,
      [&](const auto& range, PixelStatistics sums) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) {
          sums.add(pictures.subspan(i * picture_bytes, picture_bytes));
        }
        return sums;
      },
      [](PixelStatistics a, const PixelStatistics& b) {
        a.merge(b);
        return a;
      },
      whole);
}

}  // namespace h5pack
