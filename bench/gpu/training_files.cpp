// Packed files that can be trained on, for a GPU host, which has neither CIFAR-10 nor CelebA:
//
//   training_files classes|attributes FILE.h5 NUM_PICTURES FIRST_PICTURE
//
//   classes      32x32x3, ten classes, as CIFAR-10
//   attributes   218x178x3, forty attributes, as CelebA
//
// An image is a coarse pattern for its class, or the sum of one for each attribute that it has,
// under noise that makes it as hard to read and to move as a photograph. What is in it is drawn
// from its number alone: files with other numbers have other images of the same patterns, such as
// those that are held out.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "harness/drawn_images.hpp"
#include "harness/noise.hpp"

namespace bench {
namespace {

using chunkio::DType;
using chunkio::FieldData;

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kAttributes = 40;
/// Patterns have this many cells a side.
constexpr std::int64_t kCells = 4;
constexpr std::int64_t kPatternValues = kCells * kCells * 3;

/// Numbers for a purpose, drawn for one image or pattern.
SplitMix64 draw_for(std::uint64_t purpose, std::int64_t number) {
  return SplitMix64(mix(purpose) + static_cast<std::uint64_t>(number));
}

/// What holds for an image: its class, or its attributes, each for half of all images.
std::vector<std::int64_t> patterns_of(bool classes, std::int64_t image) {
  SplitMix64 draw = draw_for(1, image);
  if (classes) return {static_cast<std::int64_t>(draw() % kClasses)};
  std::vector<std::int64_t> attributes;
  for (std::int64_t a = 0; a < kAttributes; ++a) {
    if (draw() >> 63 != 0) attributes.push_back(a);
  }
  return attributes;
}

/// Values of the cells of an image, 64 to 191, between which the noise lies.
std::array<std::uint8_t, kPatternValues> cells_of(bool classes, std::int64_t image) {
  std::array<std::int64_t, kPatternValues> sums{};
  for (const std::int64_t pattern : patterns_of(classes, image)) {
    SplitMix64 draw = draw_for(2, pattern);
    for (std::int64_t& sum : sums) sum += static_cast<std::int64_t>(draw() % 33) - 16;
  }
  std::array<std::uint8_t, kPatternValues> cells{};
  std::transform(sums.begin(), sums.end(), cells.begin(), [](std::int64_t sum) {
    return static_cast<std::uint8_t>(std::clamp<std::int64_t>(128 + sum, 64, 191));
  });
  return cells;
}

void draw_image(const ImageSize& size, bool classes, std::int64_t image, std::span<std::byte> out) {
  const auto cells = cells_of(classes, image);
  SplitMix64 draw = draw_for(3, image);
  std::size_t at = 0;
  std::uint64_t noise = 0;
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const std::int64_t cell = y * kCells / size.height * kCells + x * kCells / size.width;
      for (std::int64_t c = 0; c < 3; ++c, ++at) {
        if (at % 8 == 0) noise = draw();
        // -64 to 63, so that no sum leaves a byte.
        const auto grain = static_cast<int>((noise >> (8 * (at % 8))) & 0x7F) - 64;
        out[at] = static_cast<std::byte>(cells[static_cast<std::size_t>(3 * cell + c)] + grain);
      }
    }
  }
}

template <class T>
FieldData field(const char* name, DType dtype, chunkio::Shape row_shape,
                const std::vector<T>& values) {
  FieldData data{.info = {.name = name, .dtype = dtype, .row_shape = row_shape}};
  data.values.resize(values.size() * sizeof(T));
  std::memcpy(data.values.data(), values.data(), data.values.size());
  return data;
}

void write_file(bool classes, const std::string& path, std::int64_t count, std::int64_t first) {
  const ImageSize& size = kImageSizes[classes ? 1 : 0];
  chunkio::DatasetSpec spec{.num_samples = count,
                            .height = size.height,
                            .width = size.width,
                            .channels = size.channels,
                            // Nothing sorts them.
                            .order = "shuffled"};
  if (classes) {
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) labels.push_back(patterns_of(true, first + i)[0]);
    spec.fields.push_back(field("labels", DType::int64, {}, labels));
  } else {
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(count * kAttributes));
    for (std::int64_t i = 0; i < count; ++i) {
      for (const std::int64_t a : patterns_of(false, first + i)) {
        labels[static_cast<std::size_t>(i * kAttributes + a)] = 1;
      }
    }
    spec.fields.push_back(field("labels", DType::uint8, {kAttributes}, labels));
  }
  chunkio::DatasetWriter writer(path, spec, {.overwrite = true});
  write_chunks(writer, count, [&](std::int64_t row, std::span<std::byte> rows) {
    const auto bytes = static_cast<std::size_t>(size.bytes());
    for (std::size_t i = 0; i < rows.size() / bytes; ++i) {
      draw_image(size, classes, first + row + static_cast<std::int64_t>(i),
                 rows.subspan(i * bytes, bytes));
    }
  });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() != 4 || (arguments[0] != "classes" && arguments[0] != "attributes")) {
      throw std::invalid_argument(
          "usage: training_files classes|attributes FILE.h5 NUM_PICTURES FIRST_PICTURE");
    }
    bench::write_file(arguments[0] == "classes", arguments[1], std::stoll(arguments[2]),
                      std::stoll(arguments[3]));
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "training_files: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_files: %s\n", error.what());
    return 1;
  }
}
