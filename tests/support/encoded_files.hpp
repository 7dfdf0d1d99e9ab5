/// Files of encoded images whose pixels a test can tell: small PNG images, and rows made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <chunkio/dataset_writer.hpp>

namespace chunkio::test {

namespace internal {

inline void add_number(std::vector<std::byte>& out, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::byte>(number >> shift));
}

inline void add_chunk(std::vector<std::byte>& out, const char* type,
                      std::span<const std::byte> data) {
  add_number(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = out.size();
  for (std::size_t i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(type[i]));
  out.insert(out.end(), data.begin(), data.end());
  add_number(out, libdeflate_crc32(0, out.data() + begin, out.size() - begin));
}

}  // namespace internal

/// \param rgb  [H,W,3].
inline std::vector<std::byte> png_of(std::int64_t height, std::int64_t width,
                                     std::span<const std::uint8_t> rgb) {
  std::vector<std::byte> out;
  for (const int byte : {0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A}) {
    out.push_back(static_cast<std::byte>(byte));
  }
  std::vector<std::byte> header;
  internal::add_number(header, static_cast<std::uint32_t>(width));
  internal::add_number(header, static_cast<std::uint32_t>(height));
  for (const int byte : {8, 2, 0, 0, 0}) header.push_back(static_cast<std::byte>(byte));
  internal::add_chunk(out, "IHDR", header);
  std::vector<std::uint8_t> rows;
  const auto row_bytes = static_cast<std::size_t>(3 * width);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    rows.push_back(0);  // no filter
    const auto row = rgb.subspan(y * row_bytes, row_bytes);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  libdeflate_compressor* const compressor = libdeflate_alloc_compressor(1);
  std::vector<std::byte> data(libdeflate_zlib_compress_bound(compressor, rows.size()));
  data.resize(
      libdeflate_zlib_compress(compressor, rows.data(), rows.size(), data.data(), data.size()));
  libdeflate_free_compressor(compressor);
  internal::add_chunk(out, "IDAT", data);
  internal::add_chunk(out, "IEND", {});
  return out;
}

/// Pixels of row `row`: of one size, unless it is told otherwise.
inline std::vector<std::uint8_t> encoded_pixels(std::int64_t row, std::int64_t height = 6,
                                                std::int64_t width = 8) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * height * width));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(row) * 31 + i * 7 + i / 5);
  }
  return rgb;
}

inline EncodedImage encoded_image(std::int64_t row, std::int64_t height = 6,
                                  std::int64_t width = 8) {
  return {.bytes = png_of(height, width, encoded_pixels(row, height, width)),
          .height = height,
          .width = width};
}

inline FieldData numbers_field(const std::string& name, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  const auto bytes = std::as_bytes(std::span(values));
  return {{name, DType::int64, Shape{}}, {bytes.begin(), bytes.end()}, {}};
}

/// Rows [first, first + count) of encoded_image(), with their numbers as labels.
inline std::string encoded_file(const std::string& path, std::int64_t first, std::int64_t count) {
  EncodedWriter writer(path, {});
  for (std::int64_t row = first; row < first + count; ++row) writer.add(encoded_image(row));
  writer.close({numbers_field("labels", first, count)});
  return path;
}

}  // namespace chunkio::test
