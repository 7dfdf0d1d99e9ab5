#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/tuning.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

/// 200,000 images of 218x178x3, 23 GB.
TuningTask large_images() {
  TuningTask task;
  task.num_samples = 200'000;
  task.sample_bytes = 218 * 178 * 3;
  task.row_bytes = 8;
  task.cache_bytes = 8 * kGibibyte;
  return task;
}

MachineRates machine(const std::string& disk) {
  MachineRates rates;
  rates.num_cpus = 4;
  if (!disk.empty()) rates.disk = disk_profile(disk);
  return rates;
}

TEST(Tuning, ADiskWithoutSeeksKeepsTheDefaultChunk) {
  const Tuning found = tune(large_images(), machine("sata-ssd"));
  EXPECT_EQ(found.chunk_samples, 36);
  EXPECT_EQ(found.chunk_bytes, 36 * 218 * 178 * 3);
  EXPECT_EQ(found.window_bytes, kDefaultWindowBytes);
  EXPECT_EQ(found.resident, Resident::none);
  EXPECT_EQ(found.first_epoch.bottleneck, Bottleneck::disk);
  EXPECT_GT(found.disk_share, 0.95);
}

TEST(Tuning, ADiskWithSeeksTakesTheLargestChunkThatStillMixes) {
  const Tuning found = tune(large_images(), machine("hdd"));
  EXPECT_GT(found.chunk_bytes, 31 * kMebibyte);
  EXPECT_GE(found.window_bytes / found.chunk_bytes, 8);
  EXPECT_GT(found.disk_share, 0.9);
}

TEST(Tuning, NothingThatMixesIsMuchBetterThanWhatIsTaken) {
  for (const DiskProfile& profile : disk_profiles()) {
    SCOPED_TRACE(profile.name);
    const Tuning found = tune(large_images(), machine(std::string(profile.name)));
    for (std::int64_t bytes = kMebibyte / 4; bytes <= 32 * kMebibyte; bytes *= 2) {
      TuningTask task = large_images();
      const std::int64_t samples = std::max<std::int64_t>(1, bytes / task.sample_bytes);
      task.stored = StoredGroups{.samples = samples, .request_bytes = samples * task.sample_bytes};
      EXPECT_LE(0.97 * tune(task, machine(std::string(profile.name))).first_epoch.images_per_second,
                found.first_epoch.images_per_second)
          << bytes;
    }
  }
}

TEST(Tuning, WhatFitsIntoMemoryStaysThere) {
  TuningTask task = large_images();
  task.num_samples = 10'000;  // 1.1 GiB
  const Tuning found = tune(task, machine("hdd"));
  EXPECT_EQ(found.resident, Resident::host);
  EXPECT_GT(found.memory_budget, task.num_samples * task.sample_bytes);
  EXPECT_LE(found.memory_budget, task.memory_bytes);
  EXPECT_EQ(found.first_epoch.bottleneck, Bottleneck::disk);
  EXPECT_EQ(found.later_epochs.bottleneck, Bottleneck::copy);
}

TEST(Tuning, APageCacheServesLaterEpochs) {
  TuningTask task = large_images();
  task.cache_bytes = 64 * kGibibyte;
  const Tuning found = tune(task, machine("hdd"));
  EXPECT_EQ(found.resident, Resident::none);
  EXPECT_EQ(found.first_epoch.bottleneck, Bottleneck::disk);
  EXPECT_EQ(found.later_epochs.bottleneck, Bottleneck::copy);
}

TEST(Tuning, ALargerFileComesFromTheDiskInEveryEpoch) {
  const Tuning found = tune(large_images(), machine("nfs"));
  EXPECT_DOUBLE_EQ(found.later_epochs.images_per_second, found.first_epoch.images_per_second);
}

TEST(Tuning, ThreadsThatWaitForThemselvesHideLatency) {
  TuningTask task = large_images();
  MachineRates rates = machine("");
  rates.disk = {.bytes_per_second = 4e9, .request_seconds = 20e-3, .queue_depth = 0};
  EXPECT_GT(tune(task, rates).num_threads, 8);
  task.cache_bytes = 64 * kGibibyte;  // then the kernel reads ahead
  EXPECT_EQ(tune(task, rates).num_threads, 4);
}

TEST(Tuning, AStepThatTheDiskCannotFeedNeedsEcho) {
  TuningTask task = large_images();
  task.step_seconds = 0.012;  // 21,300 images a second; the disk has some 1,270
  const Tuning found = tune(task, machine("hdd"));
  EXPECT_EQ(found.first_epoch.echo, 17);
  EXPECT_GT(found.first_epoch.stall, 0.9);
}

TEST(Tuning, ASlowStepIsFedByAnyChunkAndTheDefaultIsTaken) {
  TuningTask task = large_images();
  task.step_seconds = 1;  // 256 images a second
  const Tuning found = tune(task, machine("hdd"));
  EXPECT_EQ(found.chunk_samples, 36);
  EXPECT_DOUBLE_EQ(found.first_epoch.stall, 0);
  EXPECT_EQ(found.first_epoch.bottleneck, Bottleneck::consumer);
}

TEST(Tuning, PrefetchBridgesWaitsOfADiskThatIsFastEnough) {
  TuningTask task = large_images();
  task.batch_size = 16;
  task.step_seconds = 0.02;  // 800 images a second of some 1,300; a row group takes 40 ms
  EXPECT_EQ(tune(task, machine("hdd")).prefetch_depth, 20);
  task.step_seconds = 0.001;
  EXPECT_EQ(tune(task, machine("hdd")).prefetch_depth, 4);
}

TEST(Tuning, LittleMemoryMakesWindowsAndChunksSmaller) {
  TuningTask task = large_images();
  std::int64_t window = kDefaultWindowBytes;
  for (const std::int64_t memory : {kGibibyte, 768 * kMebibyte, 512 * kMebibyte}) {
    task.memory_bytes = memory;
    const Tuning found = tune(task, machine("hdd"));
    EXPECT_LE(found.memory_budget, memory);
    EXPECT_LE(found.window_bytes, window);
    window = found.window_bytes;
  }
  EXPECT_LT(window, kDefaultWindowBytes);
}

TEST(Tuning, TooLittleMemoryNamesTheLeast) {
  TuningTask task = large_images();
  task.memory_bytes = kMebibyte;
  test::expect_error(ErrorCode::out_of_resources, {"1048576", "memory_bytes"},
                     [&] { (void)tune(task, machine("hdd")); });
  task.stored = StoredGroups{.samples = 36, .request_bytes = 36 * task.sample_bytes};
  test::expect_error(ErrorCode::out_of_resources, {"1048576", "memory_bytes"},
                     [&] { (void)tune(task, machine("hdd")); });
}

TEST(Tuning, FewSamplesAreOneChunk) {
  TuningTask task = large_images();
  task.num_samples = 5;
  const Tuning found = tune(task, machine("nvme"));
  EXPECT_EQ(found.chunk_samples, 5);
  EXPECT_EQ(found.resident, Resident::host);
}

TEST(Tuning, HugeImagesAreTakenOneAChunk) {
  TuningTask task;
  task.num_samples = 1000;
  task.sample_bytes = 200 * kMebibyte;
  task.batch_size = 2;
  task.memory_bytes = 16 * kGibibyte;
  const Tuning found = tune(task, machine("nvme"));
  EXPECT_EQ(found.chunk_samples, 1);
  EXPECT_GE(found.window_bytes, task.sample_bytes);
}

TEST(Tuning, FilteredChunksAreDecodedInEveryEpoch) {
  TuningTask task = large_images();
  task.cache_bytes = 64 * kGibibyte;
  task.stored = StoredGroups{.samples = 36,
                             .request_bytes = 18 * task.sample_bytes,
                             .decoded_bytes = 36 * task.sample_bytes};
  const Tuning found = tune(task, machine(""));
  EXPECT_EQ(found.later_epochs.bottleneck, Bottleneck::decode);
}

DatasetInfo file_of(Shape chunk_shape, std::vector<std::string> filters) {
  DatasetInfo info;
  info.num_samples = 1000;
  info.height = 64;
  info.width = 64;
  info.channels = 3;
  info.stored.shape = {1000, 64, 64, 3};
  info.stored.chunked = chunk_shape.rank() > 0;
  info.stored.chunk_shape = chunk_shape;
  info.stored.filters = std::move(filters);
  info.stored_bytes = info.num_samples * info.sample_bytes();
  return info;
}

TEST(StoredGroups, ChunksOfWholeSamples) {
  DatasetInfo info = file_of({100, 64, 64, 3}, {});
  info.num_chunks = 10;
  const StoredGroups groups = stored_groups(info);
  EXPECT_EQ(groups.samples, 100);
  EXPECT_EQ(groups.num_requests, 1);
  EXPECT_EQ(groups.request_bytes, 100 * info.sample_bytes());
  EXPECT_EQ(groups.decoded_bytes, 0);
}

TEST(StoredGroups, ChunksThatCutSamples) {
  DatasetInfo info = file_of({100, 32, 64, 3}, {"deflate"});
  info.num_chunks = 20;
  info.stored_bytes /= 2;
  const StoredGroups groups = stored_groups(info);
  EXPECT_EQ(groups.samples, 100);
  EXPECT_EQ(groups.num_requests, 2);
  EXPECT_EQ(groups.request_bytes, 25 * info.sample_bytes());
  EXPECT_EQ(groups.decoded_bytes, 100 * info.sample_bytes());
}

TEST(StoredGroups, ContiguousDataIsReadInParts) {
  const StoredGroups groups = stored_groups(file_of({}, {}));
  EXPECT_EQ(groups.samples, 4 * kMebibyte / (64 * 64 * 3));
  EXPECT_EQ(groups.request_bytes, groups.samples * 64 * 64 * 3);
}

TEST(Hdf5Reads, ChunkOrderLoadsEachChunkOnceAndRandomOrderNearlyOneEachTime) {
  DatasetInfo info = file_of({10, 64, 64, 3}, {"deflate"});
  const std::int64_t half = info.stored_bytes / 2;
  const ChunkCacheSettings one_chunk{
      .rdcc_nslots = 521, .rdcc_nbytes = 10 * 64 * 64 * 3, .rdcc_w0 = 0.75};
  const std::int64_t window = std::int64_t{10} * 64 * 64 * 3;
  const auto ordered =
      predict_hdf5_reads(info.stored, half, one_chunk, OrderMode::chunk_shuffled, window);
  EXPECT_DOUBLE_EQ(ordered.hit_rate, 0.9);
  EXPECT_NEAR(ordered.read_amplification, 0.5, 1e-9);
  const auto random = predict_hdf5_reads(info.stored, half, one_chunk, OrderMode::random, window);
  EXPECT_LT(random.hit_rate, 0.05);
  EXPECT_GT(random.read_amplification, 4.5);
}

TEST(Hdf5Reads, ContiguousDataHasNoChunks) {
  EXPECT_NE(test::refusal([] {
              (void)predict_hdf5_reads(file_of({}, {}).stored, 1, {}, OrderMode::random);
            }).find("chunked"),
            std::string::npos);
}

TEST(Tuning, MoreChunksThanCanBeCountedAreMany) {
  TuningTask task;
  task.num_samples = std::int64_t{1} << 40;
  task.sample_bytes = 1;
  task.memory_bytes = std::int64_t{1} << 50;
  // 2^80 chunks.
  task.stored = StoredGroups{.num_requests = std::int64_t{1} << 40, .request_bytes = 1};
  EXPECT_GT(tune(task, machine("hdd")).cache.rdcc_nslots, 1'000'000);
}

TEST(AvailableMemory, IsLessThanTheMachineHas) {
  const std::int64_t bytes = available_memory();
  EXPECT_GT(bytes, 0);
  EXPECT_LT(bytes, std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
}

TEST(Tuning, ImpossibleNumbersAreRefused) {
  const auto refused = [](auto change, const char* named) {
    TuningTask task = large_images();
    change(task);
    const std::string message = test::refusal([&] { (void)tune(task, machine("nvme")); });
    EXPECT_NE(message.find(named), std::string::npos) << message;
  };
  refused([](TuningTask& task) { task.num_samples = 0; }, "num_samples");
  refused([](TuningTask& task) { task.sample_bytes = 0; }, "sample_bytes");
  refused([](TuningTask& task) { task.memory_bytes = 0; }, "memory_bytes");
  refused([](TuningTask& task) { task.batch_size = 0; }, "batch_size");
  refused([](TuningTask& task) { task.row_bytes = -1; }, "row_bytes");
  refused([](TuningTask& task) { task.cache_bytes = -1; }, "cache_bytes");
  refused([](TuningTask& task) { task.stored = StoredGroups{.samples = 0}; }, "row group");
  refused([](TuningTask& task) { task.stored = StoredGroups{.request_bytes = 0}; }, "request");
}

}  // namespace
}  // namespace chunkio
