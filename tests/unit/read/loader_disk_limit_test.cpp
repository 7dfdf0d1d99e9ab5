/// LoaderOptions::disk_limit: the same batches, later.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/disk_limit.hpp>
#include <chunkio/loader.hpp>

#include "support/packed_loader.hpp"

namespace chunkio {
namespace {

class LoaderDiskLimitTest : public test::PackedLoaderTest {
 protected:
  /// Nothing is prefetched from a further epoch.
  static LoaderOptions options(const std::optional<DiskLimit>& limit) {
    LoaderOptions limited = small();
    limited.io.num_epochs = 1;
    limited.io.disk_limit = limit;
    return limited;
  }
  /// Sample numbers and pixels, in the order of delivery.
  static std::vector<std::byte> deliver(Loader& loader, std::int64_t epoch = 0) {
    std::vector<std::byte> all;
    for (const Batch& batch : loader.epoch(epoch)) {
      const auto ids = std::as_bytes(batch.sample_ids());
      all.insert(all.end(), ids.begin(), ids.end());
      const Tensor images = batch.images();
      all.insert(all.end(), images.data(), images.data() + images.size_bytes());
    }
    return all;
  }
  static std::vector<std::byte> deliver(const std::string& path, const LoaderOptions& options) {
    Loader loader(Dataset::open(path), options);
    return deliver(loader);
  }
};

TEST_F(LoaderDiskLimitTest, TheBatchesAreThoseOfAnyOtherDisk) {
  for (const OrderMode order :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const SourceKind source : {SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
      for (const Verify verify : {Verify::off, Verify::first_epoch}) {
        LoaderOptions wanted = options(std::nullopt);
        wanted.order.mode = order;
        wanted.io.source = source;
        wanted.io.verify = verify;
        LoaderOptions limited = wanted;
        limited.io.disk_limit =
            DiskLimit{.bytes_per_second = 1e8, .request_seconds = 1e-5, .queue_depth = 2};
        ASSERT_EQ(deliver(path_, limited), deliver(path_, wanted))
            << to_string(order) << " " << to_string(source) << " " << to_string(verify);
      }
    }
  }
}

TEST_F(LoaderDiskLimitTest, ShardsLieOnOneDisk) {
  const std::string pattern = scratch_.file("part-*-of-00002.h5");
  test::PackedFile half = file_;
  half.num_samples = 115;
  for (int i = 0; i < 2; ++i) {
    test::write_packed(
        scratch_.file("part-0000" + std::to_string(i) + "-of-00002.h5"), half, i * 115,
        ShardInfo{.index = i, .count = 2, .first_row = i * 115, .total_rows = 230, .set = "both"});
  }
  const DiskLimit limit{.bytes_per_second = 1e6};
  Loader loader(Dataset::open(pattern), options(limit));
  EXPECT_EQ(deliver(loader), deliver(pattern, options(std::nullopt)));
  const LoaderStats stats = loader.epoch_stats(0);
  EXPECT_GE(stats.seconds, static_cast<double>(stats.bytes_read) / limit.bytes_per_second);
}

TEST_F(LoaderDiskLimitTest, BytesDoNotComeFasterThanTheDiskDeliversThem) {
  const DiskLimit limit{.bytes_per_second = 1e6};
  for (const SourceKind source : {SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    LoaderOptions limited = options(limit);
    limited.io.source = source;
    Loader loader(Dataset::open(path_), limited);
    deliver(loader);
    const LoaderStats stats = loader.epoch_stats(0);
    EXPECT_EQ(stats.bytes_read, file_.num_samples * file_.sample_bytes());
    EXPECT_GE(stats.seconds, static_cast<double>(stats.bytes_read) / limit.bytes_per_second);
    // The time is that of the disk, so that is what is named.
    EXPECT_GT(stats.read_seconds, stats.copy_seconds + stats.decode_seconds + stats.plan_seconds);
    EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::disk) << to_string(source);
  }
}

TEST_F(LoaderDiskLimitTest, RequestsDoNotComeFasterThanTheDiskAnswersThem) {
  LoaderOptions slow = options(DiskLimit{.request_seconds = 4e-3, .queue_depth = 2});
  slow.order.version = 1;  // no group is more than a chunk
  Loader loader(Dataset::open(path_), slow);
  deliver(loader);
  // 26 row groups in an order in which far fewer than half follow on their neighbour.
  EXPECT_GE(loader.epoch_stats(0).seconds, 13 * 4e-3 / 2);
}

TEST_F(LoaderDiskLimitTest, ResidentImagesAreChargedOnce) {
  LoaderOptions limited = options(DiskLimit{.request_seconds = 5e-3, .queue_depth = 1});
  limited.memory.resident = Resident::host;
  limited.io.num_epochs = 2;
  Loader loader(Dataset::open(path_), limited);
  deliver(loader, 0);
  const auto second = deliver(loader, 1);
  const std::int64_t image_bytes = file_.num_samples * file_.sample_bytes();
  EXPECT_EQ(loader.stats().bytes_read, image_bytes);
  EXPECT_GT(loader.epoch_stats(0).read_seconds, loader.epoch_stats(1).read_seconds);
  LoaderOptions plain = options(std::nullopt);
  plain.io.num_epochs = 2;
  Loader other(Dataset::open(path_), plain);
  deliver(other, 0);
  EXPECT_EQ(second, deliver(other, 1));
}

TEST_F(LoaderDiskLimitTest, NobodyWaitsForASlowDiskToEnd) {
  // An epoch would take four hours.
  Loader loader(Dataset::open(path_), options(DiskLimit{.bytes_per_second = 1}));
  loader.start_epoch(0);
  loader.start_epoch(1);
}

}  // namespace
}  // namespace chunkio
