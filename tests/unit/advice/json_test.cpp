#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chunkio/bottleneck.hpp>
#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>

#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using Json = nlohmann::json;

TEST(JsonTest, StatisticsHaveEveryNumber) {
  const test::ScratchFolder scratch;
  test::write_packed(scratch.file("train.h5"), {.num_samples = 230, .chunk_samples = 9});
  Loader loader(Dataset::open(scratch.file("train.h5")), {.batch_size = 16});
  for (const Batch& batch : loader.epoch(0)) static_cast<void>(batch);
  const LoaderStats stats = loader.stats();
  const Json json = Json::parse(to_json(stats));
  EXPECT_EQ(json.at("images"), 230);
  EXPECT_EQ(json.at("batches"), stats.batches);
  EXPECT_EQ(json.at("bytes_read"), stats.bytes_read);
  EXPECT_EQ(json.at("stall_seconds"), stats.stall_seconds);
  EXPECT_EQ(json.at("advice"), stats.bottleneck().summary());
  EXPECT_EQ(json.at("facts").at("order"), "chunk_shuffled");
  EXPECT_EQ(Json::parse(to_json(cuda::DeviceStats{.loader = stats})).at("loader"), json);
}

TEST(JsonTest, TextThatIsNotUtf8StaysReadable) {
  const std::vector<SkippedRows> skipped = {{.first_row = 3, .num_rows = 9, .reason = "\xff\"x"}};
  const Json json = Json::parse(to_json(skipped));
  EXPECT_EQ(json.at(0).at("reason"), "\xEF\xBF\xBD\"x");
  EXPECT_EQ(json.at(0).at("num_rows"), 9);
}

TEST(JsonTest, AReportHasItsSuggestions) {
  const Json json =
      Json::parse(to_json(BottleneckReport{.bottleneck = Bottleneck::disk,
                                           .stall = 0.5,
                                           .evidence = {"It waits."},
                                           .suggestions = {{.option = "num_threads = 8"}}}));
  EXPECT_EQ(json.at("bottleneck"), "disk");
  EXPECT_EQ(json.at("suggestions").at(0).at("option"), "num_threads = 8");
  EXPECT_EQ(json.at("evidence"), Json::array({"It waits."}));
}

}  // namespace
}  // namespace chunkio
