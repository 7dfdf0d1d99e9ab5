#include "device/line_converter.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include "device/line_converter_avx2.hpp"
#endif

namespace chunkio::device {
namespace {

std::uint32_t bits_of(float value, DType dtype) noexcept {
  if (dtype == DType::float16) return to_float16(value);
  if (dtype == DType::bfloat16) return to_bfloat16(value);
  return float_bits(value);
}

/// Output element i is entry values[i] of table i % num_tables, each of 256.
template <class Value>
void look_up(std::span<const std::uint8_t> values, const std::uint32_t* tables,
             std::size_t num_tables, std::byte* output) noexcept {
  for (std::size_t begin = 0; begin < values.size(); begin += num_tables) {
    const std::size_t count = std::min(num_tables, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<Value>(tables[i * 256 + values[begin + i]]);
      std::memcpy(output + (begin + i) * sizeof value, &value, sizeof value);
    }
  }
}

}  // namespace

LineConverter::Instructions LineConverter::best() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    return Instructions::avx2;
  }
#endif
  return Instructions::portable;
}

LineConverter::LineConverter(std::span<const ChannelScale> channels, DType dtype,
                             Instructions instructions)
    : num_channels_(channels.size()), dtype_(dtype), instructions_(instructions) {
  const auto fill = [](Pattern& pattern, std::size_t i, ChannelScale channel) {
    pattern.scale[i] = channel.scale;
    pattern.bias[i] = channel.bias;
  };
  for (std::size_t i = 0; i < kPattern; ++i) {
    fill(interleaved_, i, channels[i % num_channels_]);
    for (std::size_t c = 0; c < num_channels_; ++c) fill(planes_[c], i, channels[c]);
  }
  if (instructions_ != Instructions::portable) return;
  for (const ChannelScale& channel : channels) {
    for (int value = 0; value < 256; ++value) {
      table_.push_back(bits_of(normalized(static_cast<std::uint8_t>(value), channel), dtype));
    }
  }
}

#if defined(__x86_64__)
namespace {

void convert_avx2(std::span<const std::uint8_t> values, const LineConverter::Pattern& pattern,
                  DType dtype, std::byte* output) noexcept {
  const float* scale = pattern.scale.data();
  const float* bias = pattern.bias.data();
  if (dtype == DType::float32) {
    convert_to_float32_avx2(values.data(), values.size(), scale, bias,
                            reinterpret_cast<float*>(output));
    return;
  }
  auto* const halves = reinterpret_cast<std::uint16_t*>(output);
  if (dtype == DType::float16) {
    convert_to_float16_avx2(values.data(), values.size(), scale, bias, halves);
  } else {
    convert_to_bfloat16_avx2(values.data(), values.size(), scale, bias, halves);
  }
}

}  // namespace
#endif

void LineConverter::convert_interleaved(std::span<const std::uint8_t> values,
                                        std::byte* output) const noexcept {
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    convert_avx2(values, interleaved_, dtype_, output);
    return;
  }
#endif
  if (dtype_ == DType::float32) {
    look_up<std::uint32_t>(values, table_.data(), num_channels_, output);
  } else {
    look_up<std::uint16_t>(values, table_.data(), num_channels_, output);
  }
}

void LineConverter::convert_plane(std::size_t channel, std::span<const std::uint8_t> values,
                                  std::byte* output) const noexcept {
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    convert_avx2(values, planes_[channel], dtype_, output);
    return;
  }
#endif
  const std::uint32_t* const table = table_.data() + channel * 256;
  if (dtype_ == DType::float32) {
    look_up<std::uint32_t>(values, table, 1, output);
  } else {
    look_up<std::uint16_t>(values, table, 1, output);
  }
}

void LineConverter::split_channels(std::span<const std::uint8_t> pixels, std::uint8_t* planes,
                                   std::size_t stride, bool flipped) const noexcept {
  const std::size_t num_pixels = pixels.size() / num_channels_;
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2 && num_channels_ == 3) {
    split_three_channels_avx2(pixels.data(), num_pixels, planes, stride, flipped);
    return;
  }
#endif
  for (std::size_t pixel = 0; pixel < num_pixels; ++pixel) {
    const std::size_t to = flipped ? num_pixels - 1 - pixel : pixel;
    for (std::size_t channel = 0; channel < num_channels_; ++channel) {
      planes[channel * stride + to] = pixels[pixel * num_channels_ + channel];
    }
  }
}

}  // namespace chunkio::device
