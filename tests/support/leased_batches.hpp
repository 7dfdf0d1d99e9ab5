/// Batches of a small file, for tests that hand their memory on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

class LeasedBatches : public ::testing::Test {
 protected:
  void SetUp() override { write_packed(path_, file_); }

  /// Rows in the order of the file, one batch held at most.
  [[nodiscard]] Loader loader() const {
    return {Dataset::open(path_),
            {.batch_size = 9,
             .fields = {"weights"},
             .order = {.mode = OrderMode::sequential},
             .memory = {.max_held = 1, .release_timeout_seconds = 0},
             .io = {.num_threads = 2}}};
  }
  [[nodiscard]] std::vector<std::byte> expected_image(std::int64_t row) const {
    return image(row, file_.sample_bytes());
  }
  /// Whether a batch of `loader`, which is not at its end, is held: it gives no second one.
  static bool is_held(Loader& loader) {
    try {
      return !loader.next().has_value();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.what();
      return true;
    }
  }

  ScratchFolder scratch_;
  PackedFile file_{.num_samples = 40, .chunk_samples = 9};
  std::string path_ = scratch_.file("train.h5");
};

}  // namespace chunkio::test
