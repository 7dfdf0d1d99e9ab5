/// Datasets of files that h5py or this library wrote.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "support/h5_files.hpp"

namespace chunkio::test {

class DatasetTest : public testing::Test {
 protected:
  ~DatasetTest() override { EXPECT_EQ(h5::live_ids(), 0) << "an HDF5 id leaked"; }

  /// A small file of this library, closed.
  std::string own_file(std::int64_t num_samples = 20, std::int64_t chunk_samples = 8) {
    const DatasetSpec spec = small_spec(num_samples);
    std::string path = folder_.file("own.h5");
    DatasetWriter writer(path, spec, {.chunk_samples = chunk_samples, .overwrite = true});
    write_pattern(writer, spec);
    writer.set_statistics({{{0.25, 0.5, 0.75}, {0.1, 0.2, 0.3}}, {7, 7, 6}});
    writer.close();
    return path;
  }

  /// Opening it is an error.
  static void refused(ErrorCode code, const std::vector<std::string>& parts,
                      const std::string& path, const OpenOptions& options = {}) {
    expect_error(code, parts, [&] { (void)Dataset::open(path, options); });
  }

  /// Every image equals the pattern, read at once and in pieces.
  static void expect_pattern(const Dataset& dataset) {
    const std::int64_t n = dataset.size();
    const auto expected = pattern_rows(0, n, dataset.info().sample_bytes());
    EXPECT_TRUE(read_rows(dataset, 0, n) == expected);
    EXPECT_TRUE(read_rows(dataset, n / 2, 1) ==
                pattern_rows(n / 2, 1, dataset.info().sample_bytes()));
    EXPECT_TRUE(read_rows(dataset, n, 0).empty());
    if (const auto offset = internal::Access::impl(dataset)->leading->linear_offset) {
      // What positional reads would deliver.
      std::vector<std::byte> bytes(expected.size());
      internal::Access::impl(dataset)->bytes->read_at(*offset, bytes, {});
      EXPECT_TRUE(bytes == expected);
    }
  }

  std::vector<std::int64_t> read_labels(const Dataset& dataset) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
    dataset.read_field(dataset.info().labels->name, 0, dataset.size(),
                       std::as_writable_bytes(std::span(labels)));
    return labels;
  }

  ScratchFolder folder_;
};

}  // namespace chunkio::test
