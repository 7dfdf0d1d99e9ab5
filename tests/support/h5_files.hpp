/// Files for tests: a scratch folder, a known pixel pattern, files made by h5py, files made by
/// DatasetWriter.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

namespace chunkio::test {

/// A folder that is gone at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "chunkio-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Names of what is in it, sorted.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

/// Byte `byte` (in the file's layout) of sample `sample`; the Python scripts beside this know it
/// too.
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

/// Runs a script of tests/support with the Python that has h5py. \returns its exit status.
inline int run_script(const std::string& script, const std::string& arguments) {
  const std::string command = std::string("'") + CHUNKIO_H5PY_PYTHON + "' '" + CHUNKIO_TESTS_DIR +
                              "/support/" + script + "' " + arguments;
  return std::system(command.c_str());
}

/// A file that h5py wrote; the cases are described in the script.
inline std::string h5py_file(const ScratchFolder& folder, const std::string& name) {
  std::string path = folder / (name + ".h5");
  EXPECT_EQ(run_script("make_foreign_file.py", name + " '" + path + "'"), 0);
  return path;
}

inline std::vector<char> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T>
FieldData field(const std::string& name, const std::vector<T>& values, Shape row_shape = {}) {
  FieldData data;
  data.info = {name, dtype_of<T>(), row_shape};
  data.values.resize(values.size() * sizeof(T));
  std::memcpy(data.values.data(), values.data(), data.values.size());
  return data;
}

/// 6 x 5 RGB pictures with labels i % 3 of "cat", "dog", "schnürle", and their source rows.
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

/// Runs `call`, which must throw an Error of that code whose message is one line naming `part`.
template <class Call>
void expect_error(ErrorCode code, const std::string& part, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error, expected " << to_string(code) << " about " << part;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    const std::string message = error.what();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace chunkio::test
