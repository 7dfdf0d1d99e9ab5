/// Files of small_spec() that DatasetWriter writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "h5/read_rows.hpp"
#include "support/h5_files.hpp"

namespace chunkio::test {

inline DatasetStatistics some_statistics(std::int64_t num_samples) {
  return {{{0.25, 0.5, 0.75}, {0.1, 0.2, 0.3}}, {num_samples - 2, 1, 1}};
}

inline void write_file(const std::string& path, const DatasetSpec& spec,
                       const WriterOptions& options) {
  DatasetWriter writer(path, spec, options);
  write_pattern(writer, spec);
  writer.set_statistics(some_statistics(spec.num_samples));
  writer.close();
}

struct RoundTrip {
  std::int64_t num_samples, chunk_samples;
  Layout layout;

  friend std::ostream& operator<<(std::ostream& out, const RoundTrip& shape) {
    return out << shape.num_samples << " samples in chunks of " << shape.chunk_samples << ", "
               << to_string(shape.layout);
  }
};

/// Whether h5py finds in `path` what small_spec(n) says.
inline bool h5py_agrees(const std::string& path, const RoundTrip& shape,
                        const std::string& filter = {}) {
  const std::int64_t k = std::min(shape.chunk_samples, shape.num_samples);
  return run_script("check_with_h5py.py", "'" + path + "' " + std::to_string(shape.num_samples) +
                                              " " + std::string(to_string(shape.layout)) + " " +
                                              std::to_string(k) + " " + filter) == 0;
}

/// The digests of all samples, as they are stored.
inline std::vector<std::uint64_t> stored_digests(const Dataset& file) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(file.size()));
  const auto array = h5::open_array(*internal::Access::impl(file), "sample_digests",
                                    Shape{file.size()}, DType::uint64);
  h5::read_rows(*array, 0, file.size(), std::as_writable_bytes(std::span(values)),
                file.info().path);
  return values;
}

class DatasetWriterTest : public testing::Test {
 protected:
  ~DatasetWriterTest() override { EXPECT_EQ(h5::live_ids(), 0) << "an HDF5 id leaked"; }

  /// The file at path_ holds small_spec(n) whole.
  void expect_complete(std::int64_t n) const {
    const Dataset dataset = Dataset::open(path_);
    EXPECT_EQ(dataset.size(), n);
    EXPECT_TRUE(read_rows(dataset, 0, n) == pattern_rows(0, n, 90));
  }

  ScratchFolder folder_;
  std::string path_ = folder_.file("out.h5");
};

}  // namespace chunkio::test
