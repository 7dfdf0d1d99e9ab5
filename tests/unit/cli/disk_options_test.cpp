#include "cli/disk_options.hpp"

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/errors.hpp"

namespace cli {
namespace {

using chunkio::DiskLimit;
using chunkio::ErrorCode;
using chunkio::test::expect_error;

TEST(DiskOptions, BandwidthsAreSizesASecond) {
  EXPECT_EQ(parse_bandwidth("200MB/s"), 200e6);
  EXPECT_EQ(parse_bandwidth("1.5GiB/s"), 1.5 * 1024 * 1024 * 1024);
  EXPECT_EQ(parse_bandwidth("500000"), 500e3);
  EXPECT_EQ(parse_bandwidth("0"), 0);
  for (const char* text : {"", "/s", "fast", "-1", "200MB/m", "200Mbit/s"}) {
    expect_error(ErrorCode::invalid_argument, {text, "200MB/s"},
                 [&] { static_cast<void>(parse_bandwidth(text)); });
  }
}

TEST(DiskOptions, TimesHaveAUnit) {
  EXPECT_DOUBLE_EQ(parse_duration("8ms"), 0.008);
  EXPECT_DOUBLE_EQ(parse_duration("250us"), 250e-6);
  EXPECT_DOUBLE_EQ(parse_duration("1.5s"), 1.5);
  EXPECT_EQ(parse_duration("0"), 0);
  for (const char* text : {"", "8", "ms", "-8ms", "nan", "8 hours"}) {
    expect_error(ErrorCode::invalid_argument, {text, "8ms"},
                 [&] { static_cast<void>(parse_duration(text)); });
  }
}

TEST(DiskOptions, FiguresReplaceThoseOfTheProfile) {
  EXPECT_EQ(DiskOptions{}.limit(), std::nullopt);
  DiskOptions options;
  options.profile = chunkio::disk_profile("hdd");
  EXPECT_EQ(options.limit(), chunkio::disk_profile("hdd"));
  options.request_seconds = 0;
  DiskLimit expected = chunkio::disk_profile("hdd");
  expected.request_seconds = 0;
  EXPECT_EQ(options.limit(), expected);
  EXPECT_EQ((DiskOptions{.queue_depth = 3}.limit()), (DiskLimit{.queue_depth = 3}));
}

TEST(DiskOptions, ADiskIsShownByItsFiguresAndItsName) {
  EXPECT_EQ(disk_text(chunkio::disk_profile("hdd")),
            "a disk of 156 MB/s, 12.7 ms a request, 1 at a time (hdd)");
  EXPECT_EQ(disk_text({.bytes_per_second = 2.5e6}), "a disk of 2.5 MB/s");
  EXPECT_EQ(disk_text({.request_seconds = 53e-6}), "a disk of 0.053 ms a request");
  EXPECT_EQ(disk_text({}), "a disk of any speed");
  EXPECT_EQ(disk_json(std::nullopt), nullptr);
  EXPECT_EQ(disk_json(chunkio::disk_profile("nvme"))["profile"], "nvme");
  EXPECT_EQ(disk_json(DiskLimit{.queue_depth = 3})["profile"], "custom");
  EXPECT_EQ(disk_json(DiskLimit{.queue_depth = 3})["queue_depth"], 3);
}

}  // namespace
}  // namespace cli
