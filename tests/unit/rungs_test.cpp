#include "rungs.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "scratch_folder.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Whoever starts the clock between start() and next() would otherwise miss batches that were read
/// ahead in the meantime.
TEST(Rungs, NothingIsReadBeforeTheFirstBatchIsAskedFor) {
  const chunkio::test::ScratchFolder folder;
  const StoryPictures pictures =
      prepare_pictures(draw_jpeg_folder(folder.file("pictures"), {"drawn", 16, 16, 3}, 32),
                       std::int64_t{1} << 20, folder);
  // A batch of files has eight requests of 20 ms, one at a time.
  const StorySettings settings = {
      .batch_size = 8,
      .threads = 1,
      .window_bytes = 1 << 20,
      .limit = chunkio::DiskLimit{.request_seconds = 0.02, .queue_depth = 1}};
  for (const RungKind& rung : rungs()) {
    SCOPED_TRACE(rung.name);
    const bool of_files = rung.name.find("file") != std::string::npos ||
                          rung.name == "the same, uint8 instead of float32";
    if (!of_files) continue;
    const std::unique_ptr<Epoch> epoch = rung.start(pictures, settings);
    std::this_thread::sleep_for(milliseconds(300));
    const auto asked = Clock::now();
    ASSERT_TRUE(epoch->next());
    EXPECT_GE(Clock::now() - asked, milliseconds(8 * 20 - 1));
  }
}

}  // namespace
}  // namespace bench
