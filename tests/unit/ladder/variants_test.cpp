#include "ladder/variants.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "harness/scratch_folder.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A clock that starts between start() and next() would otherwise miss batches that were read
/// ahead in the meantime.
TEST(Variants, NothingIsReadBeforeTheFirstBatchIsAskedFor) {
  const chunkio::test::ScratchFolder folder;
  const LadderImages images =
      prepare_images(draw_jpeg_folder(folder.file("pictures"), {"drawn", 16, 16, 3}, 32),
                     std::int64_t{1} << 20, folder);
  // One request of 20 ms at a time, so what was not read before takes at least one of them.
  const LadderSettings settings = {
      .batch_size = 8,
      .threads = 1,
      .window_bytes = 1 << 20,
      .limit = chunkio::DiskLimit{.request_seconds = 0.02, .queue_depth = 1}};
  int variants_that_read = 0;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const std::unique_ptr<Epoch> epoch = variant.start(images, settings);
    std::this_thread::sleep_for(milliseconds(300));
    const auto asked = Clock::now();
    ASSERT_TRUE(epoch->next());
    const auto waited = Clock::now() - asked;
    while (epoch->next()) {
    }
    // Images that are in memory wait for nothing.
    if (epoch->bytes_read().value_or(0) == 0) continue;
    ++variants_that_read;
    EXPECT_GE(waited, milliseconds(20 - 1));
  }
  EXPECT_GT(variants_that_read, 1);
}

}  // namespace
}  // namespace bench
