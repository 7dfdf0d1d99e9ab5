/// HDF5 files with a known pixel pattern, made by h5py or by DatasetWriter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

/// Byte `byte` (in the file's layout) of sample `sample`. The Python scripts beside this have the
/// same formula; tests that need no Python use pixel() of pixels.hpp.
inline std::byte pattern(std::int64_t sample, std::int64_t byte) {
  return static_cast<std::byte>((sample * 31 + byte * 7 + (byte >> 8)) % 251);
}

inline std::vector<std::byte> pattern_rows(std::int64_t first, std::int64_t count,
                                           std::int64_t sample_bytes) {
  std::vector<std::byte> rows;
  rows.reserve(static_cast<std::size_t>(count * sample_bytes));
  for (std::int64_t row = first; row < first + count; ++row) {
    for (std::int64_t byte = 0; byte < sample_bytes; ++byte) rows.push_back(pattern(row, byte));
  }
  return rows;
}

inline std::vector<std::byte> read_rows(const Dataset& dataset, std::int64_t first,
                                        std::int64_t count) {
  std::vector<std::byte> rows(static_cast<std::size_t>(count * dataset.info().sample_bytes()));
  dataset.read_images(first, count, rows);
  return rows;
}

/// Runs a script of tests/scripts with the Python that has h5py. \returns its exit status.
inline int run_script(const std::string& script, const std::string& arguments) {
  const std::string command = std::string("'") + CHUNKIO_H5PY_PYTHON + "' '" + CHUNKIO_TESTS_DIR +
                              "/scripts/" + script + "' " + arguments;
  return std::system(command.c_str());
}

/// A file that h5py wrote; the cases are described in the script.
inline std::string h5py_file(const ScratchFolder& folder, const std::string& name) {
  std::string path = folder.file(name + ".h5");
  EXPECT_EQ(run_script("make_foreign_file.py", name + " '" + path + "'"), 0);
  return path;
}

/// One whose case needs a plugin of libhdf5; empty if it cannot be made.
inline std::string plugin_file(const ScratchFolder& folder, const std::string& name) {
  std::string path = folder.file(name + ".h5");
  return run_script("make_foreign_file.py", name + " '" + path + "' 2>&1") == 0 ? path : "";
}

template <class T>
FieldData field(const std::string& name, const std::vector<T>& values, Shape row_shape = {}) {
  FieldData data;
  data.info = {name, dtype_of<T>(), row_shape};
  data.values.resize(values.size() * sizeof(T));
  std::memcpy(data.values.data(), values.data(), data.values.size());
  return data;
}

/// 6 x 5 RGB images with labels i % 3 of "cat", "dog", "schnürle", and their source rows.
inline DatasetSpec small_spec(std::int64_t num_samples, Layout layout = Layout::nhwc) {
  DatasetSpec spec;
  spec.num_samples = num_samples;
  spec.height = 6;
  spec.width = 5;
  spec.channels = 3;
  spec.layout = layout;
  spec.class_names = {"cat", "dog", "schn\xc3\xbcrle"};
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> source;
  for (std::int64_t i = 0; i < num_samples; ++i) {
    labels.push_back(i % 3);
    source.push_back(num_samples - 1 - i);
  }
  spec.fields = {field("labels", labels), field("source_index", source)};
  spec.split = "train";
  spec.order = "shuffled";
  spec.seed = 0xfedcba9876543210U;
  spec.options_json = R"({"source":"folder"})";
  return spec;
}

inline void write_pattern(DatasetWriter& writer, const DatasetSpec& spec) {
  const std::int64_t sample_bytes = spec.height * spec.width * spec.channels;
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const std::int64_t first = chunk * writer.chunk_samples();
    const std::int64_t count = std::min(writer.chunk_samples(), spec.num_samples - first);
    writer.write_chunk(chunk, pattern_rows(first, count, sample_bytes));
  }
}

}  // namespace chunkio::test
