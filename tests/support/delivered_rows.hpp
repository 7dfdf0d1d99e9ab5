/// What an epoch of a file of h5_files.hpp's pattern delivers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/h5_files.hpp"

namespace chunkio::test {

/// The rows of an epoch in delivered order, the images of all of them compared with the pattern.
inline std::vector<std::int64_t> delivered_rows(Loader& loader, std::int64_t epoch) {
  std::vector<std::int64_t> rows;
  const std::int64_t bytes = loader.dataset().info().sample_bytes();
  for (const Batch& batch : loader.epoch(epoch)) {
    const std::byte* image = batch.images().data();
    for (const std::int64_t row : batch.sample_ids()) {
      const auto expected = pattern_rows(row, 1, bytes);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), image)) << "row " << row;
      image += bytes;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace chunkio::test
