/// Loaders of files of write_packed(), and what they deliver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

using Rows = std::vector<std::int64_t>;

/// The rows of a batch, whose pixels and labels must be theirs.
inline Rows rows_of(const Batch& batch) {
  const Tensor images = batch.images();
  const std::int64_t bytes = images.shape().without_first_axis().num_elements();
  const auto labels = batch.labels().values<std::int64_t>();
  EXPECT_EQ(images.dtype(), DType::uint8);
  EXPECT_EQ(batch.labels().shape(), Shape{batch.size()});
  for (std::size_t i = 0; i < batch.sample_ids().size(); ++i) {
    const std::int64_t row = batch.sample_ids()[i];
    const auto expected = image(row, bytes);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           images.data() + static_cast<std::int64_t>(i) * bytes))
        << "row " << row;
    EXPECT_EQ(labels[i], label_of(row));
  }
  return {batch.sample_ids().begin(), batch.sample_ids().end()};
}

/// Of an epoch in the order of delivery.
inline Rows rows_of(Loader& loader, std::int64_t epoch) {
  Rows rows;
  for (const Batch& batch : loader.epoch(epoch)) {
    EXPECT_EQ(batch.epoch(), epoch);
    const Rows more = rows_of(batch);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

/// By the definition of the order.
inline Rows rows_of(const EpochOrder& order) {
  Rows rows;
  for (std::int64_t step = 0; step < order.num_steps(); ++step) {
    const Rows batch = order.batch(step);
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  return rows;
}

/// What the error of a memory budget that is too small names as enough.
inline std::int64_t least_memory(const Dataset& dataset, LoaderOptions options) {
  options.memory.budget = 1;
  try {
    const Loader refused(dataset, options);
    ADD_FAILURE() << "one byte is enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_resources);
    const std::string message = error.what();
    const std::string before = "need at least ";
    const std::size_t at = message.find(before);
    if (at != std::string::npos) return std::stoll(message.substr(at + before.size()));
    ADD_FAILURE() << message;
  }
  return 0;
}

/// A small file.
class PackedLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override { write_packed(path_, file_); }

  /// Windows of a few chunks, so that the order is more than one shuffle of everything.
  [[nodiscard]] static LoaderOptions small(std::int64_t batch_size = 16) {
    return {.batch_size = batch_size, .seed = 7, .order = {.window_bytes = 4 * 9 * 60}};
  }

  ScratchFolder scratch_;
  PackedFile file_{.num_samples = 230, .chunk_samples = 9};
  std::string path_ = scratch_.file("train.h5");
};

}  // namespace chunkio::test
