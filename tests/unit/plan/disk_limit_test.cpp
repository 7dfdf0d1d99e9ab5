#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <chunkio/disk_limit.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

TEST(DiskLimit, LimitsThatNoDiskCanHaveAreRefusedByName) {
  require_valid({});
  require_valid({.bytes_per_second = 1, .request_seconds = 60, .queue_depth = 65'536});
  const auto refused = [](const DiskLimit& limit, const std::string& name) {
    test::expect_error(ErrorCode::invalid_argument, {name}, [&] { require_valid(limit); });
  };
  for (const double bandwidth :
       {-1.0, 0.5, 1e16, std::nan(""), std::numeric_limits<double>::infinity()}) {
    refused({.bytes_per_second = bandwidth}, "bytes_per_second");
  }
  for (const double latency : {-1e-9, 61.0, std::nan("")}) {
    refused({.request_seconds = latency}, "request_seconds");
  }
  refused({.queue_depth = -1}, "queue_depth");
  refused({.queue_depth = 65'537}, "queue_depth");
}

TEST(DiskLimit, EveryProfileIsPossibleAndSaysWhereItIsFrom) {
  ASSERT_EQ(disk_profiles().size(), 6U);
  for (const DiskProfile& profile : disk_profiles()) {
    require_valid(profile.limit);
    EXPECT_GT(profile.limit.bytes_per_second, 0) << profile.name;
    EXPECT_FALSE(profile.source.empty()) << profile.name;
    EXPECT_EQ(disk_profile(profile.name), profile.limit);
  }
}

TEST(DiskLimit, AnUnknownProfileIsAnErrorThatNamesThoseThereAre) {
  test::expect_error(ErrorCode::invalid_argument,
                     {"floppy", "hdd", "sata-ssd", "nvme", "nfs", "cloud-volume", "object-storage"},
                     [] { static_cast<void>(disk_profile("floppy")); });
}

}  // namespace
}  // namespace chunkio
