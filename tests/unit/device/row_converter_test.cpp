#include "device/row_converter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::device {
namespace {

using Instructions = RowConverter::Instructions;

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// The value of a binary16, by its definition.
double value_of_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// Whether `rounded` is the nearest of all binary16 to `value`, ties to even, by comparing with its
/// neighbours.
void expect_nearest_float16(float value, std::uint16_t rounded) {
  const double got = value_of_float16(rounded);
  if (std::isinf(got)) {
    EXPECT_GE(std::fabs(value), 65520.0F) << value;  // halfway to what would be 2^16
    return;
  }
  const double error = std::fabs(static_cast<double>(value) - got);
  for (const int step : {-1, 1}) {
    const int magnitude = (rounded & 0x7FFF) + step;
    if (magnitude < 0) continue;
    const auto neighbour = static_cast<std::uint16_t>((rounded & 0x8000) | magnitude);
    double other = value_of_float16(neighbour);
    if (std::isinf(other)) other = std::copysign(65536.0, got);
    const double distance = std::fabs(static_cast<double>(value) - other);
    EXPECT_LE(error, distance) << value;
    if (error == distance) {
      EXPECT_EQ(rounded & 1, 0) << value;
    }
  }
}

TEST(Float16, IsTheNearest) {
  EXPECT_EQ(to_float16(0.0F), 0);
  EXPECT_EQ(to_float16(-0.0F), 0x8000);
  EXPECT_EQ(to_float16(1.0F), 0x3C00);
  EXPECT_EQ(to_float16(-2.0F), 0xC000);
  EXPECT_EQ(to_float16(65504.0F), 0x7BFF);
  EXPECT_EQ(to_float16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F), 0x7C00);
  EXPECT_EQ(to_float16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::denorm_min()), 0);
  // Every exponent, with fractions around every place where rounding could go wrong.
  for (std::uint32_t exponent = 90; exponent < 144; ++exponent) {
    for (std::uint32_t fraction = 0; fraction < 1U << 23; fraction += 0x7FF) {
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        const float value = float_of(sign | exponent << 23 | fraction);
        expect_nearest_float16(value, to_float16(value));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Float16, EveryFiniteOneIsItself) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00) continue;
    ASSERT_EQ(to_float16(static_cast<float>(value_of_float16(half))), half);
  }
}

TEST(Bfloat16, IsTheNearest) {
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80);
  for (std::uint32_t high = 0; high < 0x7F80; ++high) {
    // Ties go to the even one; what is above or below goes up or down.
    const auto down = static_cast<std::uint16_t>(high);
    const auto up = static_cast<std::uint16_t>(high + 1);
    ASSERT_EQ(to_bfloat16(float_of(high << 16)), down);
    ASSERT_EQ(to_bfloat16(float_of(high << 16 | 0x7FFF)), down);
    ASSERT_EQ(to_bfloat16(float_of(high << 16 | 0x8000)), high % 2 == 0 ? down : up);
    ASSERT_EQ(to_bfloat16(float_of(high << 16 | 0x8001)), up);
    ASSERT_EQ(to_bfloat16(float_of(0x80000000U | high << 16 | 0x8001)), up | 0x8000);
  }
}

class LineConverterTest : public ::testing::TestWithParam<std::tuple<std::size_t, DType>> {
 protected:
  [[nodiscard]] static std::size_t num_channels() { return std::get<0>(GetParam()); }
  [[nodiscard]] static DType dtype() { return std::get<1>(GetParam()); }

  [[nodiscard]] static std::vector<ChannelScale> channels() {
    std::vector<ChannelScale> scales;
    for (std::size_t c = 0; c < num_channels(); ++c) {
      const double mean = 0.4 + 0.03 * static_cast<double>(c);
      const double std = 0.2 + 0.017 * static_cast<double>(c);
      scales.push_back({static_cast<float>(1 / (255 * std)), static_cast<float>(-mean / std)});
    }
    return scales;
  }

  /// Bits of one converted value, from the definition.
  [[nodiscard]] static std::uint32_t expected(std::uint8_t value, ChannelScale channel) {
    const float result = std::fma(static_cast<float>(value), channel.scale, channel.bias);
    if (dtype() == DType::float16) return to_float16(result);
    if (dtype() == DType::bfloat16) return to_bfloat16(result);
    return std::bit_cast<std::uint32_t>(result);
  }

  static std::vector<Instructions> all_instructions() {
    std::vector<Instructions> all{Instructions::portable};
    if (RowConverter::best() != Instructions::portable) all.push_back(RowConverter::best());
    return all;
  }
};

/// A line that a converter writes, with marks before and behind it.
class Line {
 public:
  /// \param offset  of its first element in a cache line.
  Line(std::size_t num_elements, DType dtype, std::size_t offset)
      : element_bytes_(size_of(dtype)),
        bytes_(num_elements * element_bytes_),
        memory_(bytes_ + 4 * kCacheLineBytes, kMark) {
    auto* const begin = memory_.data() + kCacheLineBytes;
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    line_ = begin + (kCacheLineBytes - address % kCacheLineBytes) % kCacheLineBytes +
            offset * element_bytes_ % kCacheLineBytes;
  }

  [[nodiscard]] std::byte* data() { return line_; }
  [[nodiscard]] std::uint32_t element(std::size_t i) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, line_ + i * element_bytes_, element_bytes_);
    return bits;
  }
  /// Of both marks, that nothing wrote to them.
  [[nodiscard]] bool is_alone() const {
    const auto is_mark = [](std::byte byte) { return byte == kMark; };
    return std::all_of(memory_.data(), static_cast<const std::byte*>(line_), is_mark) &&
           std::all_of(static_cast<const std::byte*>(line_ + bytes_),
                       memory_.data() + memory_.size(), is_mark);
  }

 private:
  static constexpr std::byte kMark{0xA5};

  std::size_t element_bytes_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* line_;
};

struct LineCase {
  std::size_t num_pixels;
  std::size_t offset;  ///< In elements, of a cache line.
};

/// Every short line, some of which are whole cache lines; every place in a cache line for one; and
/// long ones, which are streamed wherever they begin.
std::vector<LineCase> line_cases() {
  std::vector<LineCase> cases;
  for (std::size_t pixels = 0; pixels < 70; ++pixels) cases.push_back({pixels, pixels % 5});
  for (const std::size_t pixels : {64U, 96U, 192U}) cases.push_back({pixels, 0});
  for (std::size_t offset = 0; offset < 32; ++offset) cases.push_back({8192 + offset, offset});
  return cases;
}

/// Random, so that long lines have every value of every channel; and exactly as much memory, so
/// that a sanitizer sees reads beyond.
std::vector<std::uint8_t> random_values(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<std::uint8_t> values(count);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  return values;
}

/// Every line with all instructions, in either direction, with both kinds of stores.
/// \param inputs, outputs  values of a pixel.
/// \param convert(converter, values, reversed, stores, output)  what is tested.
/// \param wanted(pixel, i)  bits of output value i, given the values of the pixel it comes from.
template <class Convert, class Wanted>
void check_every_line(std::span<const ChannelScale> scales, DType dtype,
                      std::span<const Instructions> all_instructions, std::size_t inputs,
                      std::size_t outputs, const Convert& convert, const Wanted& wanted) {
  for (const Instructions instructions : all_instructions) {
    const RowConverter converter(scales, dtype, instructions);
    for (const LineCase& line_case : line_cases()) {
      const auto values = random_values(line_case.num_pixels * inputs);
      for (const bool reversed : {false, true}) {
        for (const Stores stores : {Stores::cached, Stores::streaming}) {
          Line line(line_case.num_pixels * outputs, dtype, line_case.offset);
          convert(converter, values, reversed, stores, line.data());
          for (std::size_t i = 0; i < line_case.num_pixels * outputs; ++i) {
            const std::size_t pixel = i / outputs;
            const std::size_t from = reversed ? line_case.num_pixels - 1 - pixel : pixel;
            ASSERT_EQ(line.element(i),
                      wanted(std::span(values).subspan(from * inputs, inputs), i % outputs))
                << line_case.num_pixels << " pixels, element " << i << ", reversed " << reversed;
          }
          ASSERT_TRUE(line.is_alone()) << line_case.num_pixels;
        }
      }
    }
  }
}

using Pixel = std::span<const std::uint8_t>;

TEST_P(LineConverterTest, PixelsOfEveryLineInEitherDirection) {
  const std::vector<ChannelScale> scales = channels();
  check_every_line(
      scales, dtype(), all_instructions(), num_channels(), num_channels(),
      [](const RowConverter& converter, const auto&... arguments) {
        converter.convert_pixels(arguments...);
      },
      [&](Pixel pixel, std::size_t i) { return expected(pixel[i], scales[i]); });
}

TEST_P(LineConverterTest, ChannelsOfEveryLineInEitherDirection) {
  const std::vector<ChannelScale> scales = channels();
  for (std::size_t c = 0; c < num_channels(); ++c) {
    check_every_line(
        scales, dtype(), all_instructions(), num_channels(), 1,
        [c](const RowConverter& converter, const auto&... arguments) {
          converter.convert_channel(c, arguments...);
        },
        [&](Pixel pixel, std::size_t) { return expected(pixel[c], scales[c]); });
    if (HasFatalFailure()) return;
  }
}

TEST_P(LineConverterTest, PlanesOfEveryLineInEitherDirection) {
  const std::vector<ChannelScale> scales = channels();
  check_every_line(
      scales, dtype(), all_instructions(), 1, 1,
      [](const RowConverter& converter, const auto&... arguments) {
        converter.convert_plane(num_channels() - 1, arguments...);
      },
      [&](Pixel pixel, std::size_t) { return expected(pixel[0], scales.back()); });
}

INSTANTIATE_TEST_SUITE_P(All, LineConverterTest,
                         ::testing::Combine(::testing::Values(1U, 2U, 3U, 4U),
                                            ::testing::Values(DType::float32, DType::float16,
                                                              DType::bfloat16)),
                         [](const auto& suite) {
                           return std::string(to_string(std::get<1>(suite.param))) + "x" +
                                  std::to_string(std::get<0>(suite.param));
                         });

}  // namespace
}  // namespace chunkio::device
