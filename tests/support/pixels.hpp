/// Images whose every byte is known from the row number, and files of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

namespace chunkio::test {

/// Byte `i` of image `row`: a hash, so that a byte of another row or place is noticed. Neighbours
/// are alike enough for deflate to find something, so that undoing it is work.
inline std::byte pixel(std::int64_t row, std::int64_t i) {
  auto x = static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(i);
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  return static_cast<std::byte>(x & 0xFF);
}

inline std::vector<std::byte> image(std::int64_t row, std::int64_t sample_bytes) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(sample_bytes));
  for (std::int64_t i = 0; i < sample_bytes; ++i)
    bytes[static_cast<std::size_t>(i)] = pixel(row, i);
  return bytes;
}

inline std::int64_t label_of(std::int64_t row) { return (row * 7 + 3) % 10; }

struct PackedFile {
  std::int64_t num_samples = 100;
  std::int64_t height = 5, width = 4, channels = 3;
  std::int64_t chunk_samples = 7;
  Layout layout = Layout::nhwc;
  bool labels = true;
  ChunkFilter filter = {};

  [[nodiscard]] std::int64_t sample_bytes() const { return height * width * channels; }
};

template <class T>
std::vector<std::byte> as_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Writes such a file with labels label_of(row) and a float32 field `weights` [N,2] of (row, -row).
/// \param first_row  number of its first row; more than 0 for a part of a dataset.
inline void write_packed(const std::string& path, const PackedFile& file,
                         std::int64_t first_row = 0, const std::optional<ShardInfo>& shard = {}) {
  DatasetSpec spec{.num_samples = file.num_samples,
                   .height = file.height,
                   .width = file.width,
                   .channels = file.channels,
                   .layout = file.layout,
                   .channel_order = file.channels == 1 ? "gray" : "RGB"};
  spec.shard = shard;
  std::vector<std::int64_t> labels;
  std::vector<float> weights;
  for (std::int64_t row = first_row; row < first_row + file.num_samples; ++row) {
    labels.push_back(label_of(row));
    weights.push_back(static_cast<float>(row));
    weights.push_back(-static_cast<float>(row));
  }
  if (file.labels) {
    spec.fields.push_back({{"labels", DType::int64, Shape{}}, as_bytes(labels)});
    for (int k = 0; k < 10; ++k) spec.class_names.push_back("class " + std::to_string(k));
  }
  spec.fields.push_back({{"weights", DType::float32, Shape{2}}, as_bytes(weights)});
  DatasetWriter writer(path, spec, {.chunk_samples = file.chunk_samples, .filter = file.filter});
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    std::vector<std::byte> rows;
    const std::int64_t begin = chunk * writer.chunk_samples();
    const std::int64_t end = std::min(begin + writer.chunk_samples(), file.num_samples);
    for (std::int64_t row = begin; row < end; ++row) {
      const auto bytes = image(first_row + row, file.sample_bytes());
      rows.insert(rows.end(), bytes.begin(), bytes.end());
    }
    writer.write_chunk(chunk, rows);
  }
  writer.close();
}

}  // namespace chunkio::test
