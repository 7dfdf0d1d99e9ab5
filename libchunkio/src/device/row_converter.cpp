#include "device/row_converter.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace chunkio::device {
namespace {

std::uint32_t bits_of(float value, DType dtype) noexcept {
  if (dtype == DType::float16) return to_float16(value);
  if (dtype == DType::bfloat16) return to_bfloat16(value);
  return float_bits(value);
}

/// Calls `write` with the output as integers of its type's size: those take the low bytes of what
/// the tables hold.
template <class Write>
void by_element(DType dtype, std::byte* output, const Write& write) noexcept {
  if (dtype == DType::float32) {
    write(reinterpret_cast<std::uint32_t*>(output));
  } else {
    write(reinterpret_cast<std::uint16_t*>(output));
  }
}

#if defined(__x86_64__)
/// \param sources  of eight values in a group of `group_bytes`, at least 16; each four of them lie
///                 within 16 bytes.
LaneGather gather_of(const std::array<std::size_t, 8>& sources, std::size_t group_bytes) noexcept {
  constexpr std::size_t kLaneBytes = 16;
  LaneGather gather{};
  std::fill(std::begin(gather.mask), std::end(gather.mask), std::int8_t{-1});  // zero
  for (std::size_t lane = 0; lane < 2; ++lane) {
    const auto first = sources.begin() + static_cast<std::ptrdiff_t>(4 * lane);
    // Nothing is read beyond the group.
    const std::size_t offset =
        std::min(*std::min_element(first, first + 4), group_bytes - kLaneBytes);
    (lane == 0 ? gather.low : gather.high) = static_cast<std::int32_t>(offset);
    for (std::size_t i = 0; i < 4; ++i) {
      gather.mask[kLaneBytes * lane + 4 * i] =
          static_cast<std::int8_t>(sources[4 * lane + i] - offset);
    }
  }
  return gather;
}

/// Whether a line of `bytes` is to bypass the cache.
bool is_streamed(Stores stores, const std::byte* output, std::size_t bytes) noexcept {
  if (stores != Stores::streaming) return false;
  const bool whole_lines = reinterpret_cast<std::uintptr_t>(output) % kCacheLineBytes == 0 &&
                           bytes % kCacheLineBytes == 0;
  return whole_lines || std::cmp_greater_equal(bytes, kMinStreamedBytes);
}

/// Older versions of clang do not know it by its name.
bool has_f16c() noexcept {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

RowConverter::Instructions RowConverter::best() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
    return Instructions::avx2;
  }
#endif
  return Instructions::portable;
}

void RowConverter::Pattern::set(std::size_t i, ChannelScale channel) noexcept {
  scale[i] = channel.scale;
  bias[i] = channel.bias;
}

RowConverter::RowConverter(std::span<const ChannelScale> channels, DType dtype,
                           Instructions instructions)
    : num_channels_(channels.size()), dtype_(dtype), instructions_(instructions) {
  if (instructions_ == Instructions::avx2) {
    prepare_avx2(channels);
    return;
  }
  for (const ChannelScale& channel : channels) {
    for (int value = 0; value < 256; ++value) {
      table_.push_back(bits_of(normalized(static_cast<std::uint8_t>(value), channel), dtype));
    }
  }
}

void RowConverter::prepare_avx2([[maybe_unused]] std::span<const ChannelScale> channels) {
#if defined(__x86_64__)
  avx2_ = dtype_ == DType::float32   ? &kToFloat32Avx2
          : dtype_ == DType::float16 ? &kToFloat16Avx2
                                     : &kToBfloat16Avx2;
  for (std::size_t i = 0; i < 2 * kPattern; ++i) {
    interleaved_.set(i, channels[i % num_channels_]);
    for (std::size_t c = 0; c < num_channels_; ++c) planes_[c].set(i, channels[c]);
  }
  reversed_pixels_ = reversal(num_channels_);
  reversed_values_ = reversal(1);
  if (num_channels_ == 1) return;  // whose only channel is the pixels
  for (std::size_t c = 0; c < num_channels_; ++c) {
    for (const bool reversed : {false, true}) {
      std::array<std::size_t, 8> sources{};
      for (std::size_t i = 0; i < 8; ++i) sources[i] = (reversed ? 7 - i : i) * num_channels_ + c;
      channels_[c][reversed ? 1 : 0] = gather_of(sources, 8 * num_channels_);
    }
  }
#endif
}

#if defined(__x86_64__)
RowConverter::Reversal RowConverter::reversal(std::size_t num_channels) noexcept {
  const std::size_t num_pixels = kPattern / num_channels;
  Reversal gathers{};
  for (std::size_t vector = 0; vector < gathers.size(); ++vector) {
    std::array<std::size_t, 8> sources{};
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t value = 8 * vector + i;
      sources[i] = (num_pixels - 1 - value / num_channels) * num_channels + value % num_channels;
    }
    gathers[vector] = gather_of(sources, kPattern);
  }
  return gathers;
}
#endif

void RowConverter::convert_pixels(std::span<const std::uint8_t> pixels, bool reversed,
                                  [[maybe_unused]] Stores stores,
                                  std::byte* output) const noexcept {
  const std::size_t num_pixels = pixels.size() / num_channels_;
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    const bool streamed = is_streamed(stores, output, pixels.size() * size_of(dtype_));
    if (reversed) {
      avx2_->convert_reversed({pixels.data(), num_pixels, num_channels_}, reversed_pixels_.data(),
                              interleaved_.line(), streamed, output);
    } else {
      avx2_->convert(pixels.data(), pixels.size(), interleaved_.line(), streamed, output);
    }
    return;
  }
#endif
  by_element(dtype_, output, [&]<class Element>(Element* to) {
    for (std::size_t pixel = 0; pixel < num_pixels; ++pixel) {
      const std::size_t from = reversed ? num_pixels - 1 - pixel : pixel;
      for (std::size_t c = 0; c < num_channels_; ++c) {
        *to++ = static_cast<Element>(table(c)[pixels[from * num_channels_ + c]]);
      }
    }
  });
}

void RowConverter::convert_channel(std::size_t channel, std::span<const std::uint8_t> pixels,
                                   bool reversed, [[maybe_unused]] Stores stores,
                                   std::byte* output) const noexcept {
  if (num_channels_ == 1) {
    convert_pixels(pixels, reversed, stores, output);
    return;
  }
  const std::size_t num_pixels = pixels.size() / num_channels_;
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    avx2_->convert_channel({pixels.data(), num_pixels, num_channels_}, channel, reversed,
                           channels_[channel][reversed ? 1 : 0], planes_[channel].line(),
                           is_streamed(stores, output, num_pixels * size_of(dtype_)), output);
    return;
  }
#endif
  by_element(dtype_, output, [&]<class Element>(Element* to) {
    for (std::size_t pixel = 0; pixel < num_pixels; ++pixel) {
      const std::size_t from = reversed ? num_pixels - 1 - pixel : pixel;
      to[pixel] = static_cast<Element>(table(channel)[pixels[from * num_channels_ + channel]]);
    }
  });
}

void RowConverter::convert_plane(std::size_t channel, std::span<const std::uint8_t> values,
                                 bool reversed, [[maybe_unused]] Stores stores,
                                 std::byte* output) const noexcept {
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    const bool streamed = is_streamed(stores, output, values.size() * size_of(dtype_));
    if (reversed) {
      avx2_->convert_reversed({values.data(), values.size(), 1}, reversed_values_.data(),
                              planes_[channel].line(), streamed, output);
    } else {
      avx2_->convert(values.data(), values.size(), planes_[channel].line(), streamed, output);
    }
    return;
  }
#endif
  by_element(dtype_, output, [&]<class Element>(Element* to) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t from = reversed ? values.size() - 1 - i : i;
      to[i] = static_cast<Element>(table(channel)[values[from]]);
    }
  });
}

}  // namespace chunkio::device
