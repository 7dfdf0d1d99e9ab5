// Pipelines that are slow in one place on purpose: the report must name it.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/bottleneck.hpp>
#include <chunkio/chunkio.hpp>

#include "base/cpus.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/packed_loader.hpp"
#include "support/waiting_stats.hpp"

namespace chunkio {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class StageRatesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 2048;
  static constexpr std::int64_t kSide = 48;

  /// Images of four bits of noise a byte, which take deflate time.
  std::string make_file(const ChunkFilter& filter, std::int64_t chunk_samples = 32) const {
    const std::string path = folder_.file(filter.deflate_level > 0 ? "deflated.h5" : "plain.h5");
    const DatasetSpec spec{.num_samples = kSamples,
                           .height = kSide,
                           .width = kSide,
                           .channels = 3,
                           .channel_order = "RGB"};
    DatasetWriter writer(path, spec, {.chunk_samples = chunk_samples, .filter = filter});
    std::mt19937 random(1);
    for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
      std::vector<std::byte> rows(
          static_cast<std::size_t>(writer.chunk_samples() * kSide * kSide * 3));
      for (std::byte& byte : rows) byte = static_cast<std::byte>(random() & 0x0F);
      writer.write_chunk(chunk, rows);
    }
    writer.close();
    return path;
  }

  /// Small windows, so that a short run has many of them.
  [[nodiscard]] static LoaderOptions options() {
    return {.batch_size = 32, .order = {.window_bytes = 1 << 20}, .io = {.num_threads = 2}};
  }

  /// Epochs until `num_batches` were taken after the first, which comes late in any case. `step` is
  /// called for each.
  template <class Step>
  static LoaderStats run(Loader& loader, std::int64_t num_batches, const Step& step) {
    loader.start_epoch(0);
    EXPECT_TRUE(loader.next());
    const LoaderStats first = loader.stats();
    for (std::int64_t taken = 0, epoch = 0; taken < num_batches;) {
      if (loader.next()) {
        step(taken++);
      } else {
        loader.start_epoch(++epoch);
      }
    }
    return loader.stats().since(first);
  }

  /// As if the consumer had come for each batch at once, which took all there was: a busy machine
  /// wakes it late, and meanwhile workers wait for free buffers.
  static LoaderStats without_lateness(LoaderStats stats) {
    stats.seconds -= stats.output_wait_seconds / static_cast<double>(stats.num_threads);
    stats.output_wait_seconds = 0;
    stats.stall_seconds = stats.seconds;
    return stats.since({});
  }

  static std::string describe(const BottleneckReport& found) {
    std::string text(to_string(found.bottleneck));
    for (const std::string& line : found.evidence) text += "\n" + line;
    for (const Suggestion& suggestion : found.suggestions) {
      text += "\n" + suggestion.option + ": " + std::to_string(suggestion.stall) + " " +
              std::to_string(suggestion.images_per_second);
    }
    return text;
  }

  test::ScratchFolder folder_;
};

TEST_F(StageRatesTest, HeavyFilterIsNamedDecode) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "under a sanitizer copying is slow, and libdeflate, which has none, is not";
#endif
  const std::string path = make_file({.deflate_level = 9});
  Loader loader(Dataset::open(path), options());
  StageRates alone = measure_stages(loader, 0.05);
  EXPECT_GT(alone.decode_bytes_per_second, 0);
  EXPECT_LT(alone.decode_bytes_per_second, alone.copy_bytes_per_second);
  EXPECT_EQ(alone.num_threads, 2);
  // On a disk slower than decoding more bytes would not help, and this machine's may be as slow.
  alone.disk_bytes_per_second = 3e9;
  alone.request_seconds = 1e-4;

  const LoaderStats stats = without_lateness(run(loader, 200, [](std::int64_t) {}));
  for (const BottleneckReport& found : {stats.bottleneck(), find_bottleneck(stats, alone)}) {
    EXPECT_EQ(to_string(found.bottleneck), "decode") << describe(found);
    EXPECT_TRUE(test::find_suggestion(found, "without a filter")) << describe(found);
  }
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::decode);
}

TEST_F(StageRatesTest, LimitedBandwidthIsNamedDisk) {
  LoaderOptions limited = options();
  // 44 ms for each batch: beside that a busy machine wakes the consumer soon.
  limited.io.disk_limit = DiskLimit{.bytes_per_second = 5e6};
  limited.memory.budget = 16 << 20;  // so that keeping all images does not help
  Loader loader(Dataset::open(make_file({})), limited);
  const StageRates alone = measure_stages(loader, 0.1);
  EXPECT_LT(alone.disk_bytes_per_second, 7.5e6);
  EXPECT_GT(alone.copy_bytes_per_second, alone.disk_bytes_per_second);

  // A step that wants twice as much.
  const double batch_bytes = 32.0 * kSide * kSide * 3;
  const auto step = std::chrono::duration<double>(batch_bytes / 10e6);
  const LoaderStats stats =
      run(loader, 30, [&](std::int64_t) { std::this_thread::sleep_for(step); });
  for (const BottleneckReport& found : {stats.bottleneck(), find_bottleneck(stats, alone)}) {
    EXPECT_EQ(to_string(found.bottleneck), "disk") << describe(found);
    EXPECT_GT(found.stall, 0.2) << describe(found);
    const Suggestion* const echo = test::find_suggestion(found, "echo = ");
    ASSERT_TRUE(echo) << describe(found);
    EXPECT_LT(echo->stall, 0.05);
    EXPECT_TRUE(test::find_suggestion(found, "disk that delivers")) << describe(found);
  }
}

TEST_F(StageRatesTest, SlowConsumerIsTheLimit) {
  Loader loader(Dataset::open(make_file({})), options());
  const BottleneckReport found = run(loader, 40, [](std::int64_t) {
                                   std::this_thread::sleep_for(milliseconds(10));
                                 }).bottleneck();
  EXPECT_EQ(to_string(found.bottleneck), "consumer") << describe(found);
  EXPECT_TRUE(found.suggestions.empty());
}

TEST_F(StageRatesTest, StarvedBudgetIsNamedBuffers) {
  LoaderOptions starved = options();
  starved.order.window_bytes = 1;  // one row group
  starved.memory.prefetch_depth = 1;
  starved.memory.max_held = 1;
  const Dataset dataset = Dataset::open(make_file({.deflate_level = 9}));
  starved.memory.budget = test::least_memory(dataset, starved);
  Loader loader(dataset, starved);
  // Bursts of twelve batches, and pauses in which they all could have been read.
  Clock::time_point burst_start = Clock::now();
  const BottleneckReport found = run(loader, 120, [&](std::int64_t taken) {
                                   if (taken % 12 != 11) return;
                                   std::this_thread::sleep_for(4 * (Clock::now() - burst_start));
                                   burst_start = Clock::now();
                                 }).bottleneck();
  EXPECT_EQ(to_string(found.bottleneck), "buffers") << describe(found);
  ASSERT_FALSE(found.suggestions.empty()) << describe(found);
  EXPECT_EQ(found.suggestions.front().option, "prefetch_depth = 4");
}

TEST_F(StageRatesTest, StagesAreMeasuredOfEveryKindOfSource) {
  const std::string path = make_file({});
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(source));
    LoaderOptions wanted = options();
    wanted.order.version = 1;  // each chunk is a row group
    wanted.io.source = source;
    const Loader loader(Dataset::open(path), wanted);
    const StageRates alone = measure_stages(loader, 0.02);
    EXPECT_GT(alone.disk_bytes_per_second, 0);
    EXPECT_GT(alone.copy_bytes_per_second, 0);
    EXPECT_GT(alone.processor_bytes_per_second, 0);
    EXPECT_EQ(alone.decode_bytes_per_second, 0) << "there is no filter";
    EXPECT_GE(alone.cached_share, 0);
    EXPECT_LE(alone.cached_share, 1);
    EXPECT_EQ(alone.request_bytes, 32 * kSide * kSide * 3);
    EXPECT_EQ(loader.stats().batches, 0) << "the loader itself is not used";
  }
}

TEST_F(StageRatesTest, OneDirectThreadBehindALatencyIsToldOfMore) {
  LoaderOptions slow = options();
  slow.io.source = SourceKind::scatter;
  slow.io.direct_io = true;
  slow.io.num_threads = 1;
  slow.io.disk_limit = DiskLimit{.request_seconds = 0.02};
  slow.memory.budget = 16 << 20;  // so that keeping all images does not help
  Loader loader(Dataset::open(make_file({})), slow);
  if (!loader.stats().facts.direct_io) GTEST_SKIP() << loader.source_reason();
  const StageRates alone = measure_stages(loader, 0.2);
  EXPECT_GE(alone.request_seconds, 0.019);
  EXPECT_LT(alone.request_seconds, 0.06);

  const LoaderStats stats = run(loader, 20, [](std::int64_t) {});
  for (const BottleneckReport& found : {stats.bottleneck(), find_bottleneck(stats, alone)}) {
    EXPECT_EQ(to_string(found.bottleneck), "disk") << describe(found);
    const Suggestion* const threads = test::find_suggestion(found, "num_threads = ");
    ASSERT_TRUE(threads) << describe(found);
    const double now = static_cast<double>(stats.images) / stats.seconds;
    EXPECT_GT(threads->images_per_second, 2 * now) << describe(found);
  }
  EXPECT_TRUE(test::find_suggestion(find_bottleneck(stats, alone), "in chunks of"));
}

TEST_F(StageRatesTest, ADiskOfOneRequestAtATimeIsToldOfLargerChunks) {
  // So slow that checking memory (ThreadSanitizer) is not slower.
  constexpr double kLatency = 0.006;
  constexpr double kBandwidth = 52e6;
  LoaderOptions slow = options();
  slow.order.version = 1;  // each chunk is a row group
  slow.io.disk_limit =
      DiskLimit{.bytes_per_second = kBandwidth, .request_seconds = kLatency, .queue_depth = 1};
  slow.memory.budget = 16 << 20;  // so that keeping all images does not help
  Loader loader(Dataset::open(make_file({}, 1)), slow);
  const StageRates alone = measure_stages(loader, 0.1);
  EXPECT_GT(alone.large_bytes_per_second, 3 * alone.disk_bytes_per_second);

  const LoaderStats stats = run(loader, 60, [](std::int64_t) {});
  const BottleneckReport found = find_bottleneck(stats, alone);
  const Suggestion* const chunks = test::find_suggestion(found, "in chunks of");
  ASSERT_TRUE(chunks) << describe(found);
  // What the disk brings in chunks of 4 MiB, each after one wait.
  constexpr double kChunk = 4 << 20;
  const double best = kChunk / (kSide * kSide * 3) / (kLatency + kChunk / kBandwidth);
  EXPECT_GT(chunks->images_per_second, best / 2) << describe(found);
  EXPECT_LT(chunks->images_per_second, 1.2 * best) << describe(found);
}

TEST_F(StageRatesTest, ADiskThatAnswersNoRequestInTimeIsComputed) {
  LoaderOptions slow = options();
  slow.io.disk_limit = DiskLimit{.bytes_per_second = 100};
  const Loader loader(Dataset::open(make_file({})), slow);
  const Clock::time_point start = Clock::now();
  const StageRates alone = measure_stages(loader, 0.05);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60)) << "a request takes half an hour";
  // O_DIRECT reads whole blocks, which are not charged here.
  EXPECT_NEAR(alone.disk_bytes_per_second, 100, 10);
}

TEST_F(StageRatesTest, BytesOfASampleAreThoseOfTheFileHoweverLargeItsGroups) {
  struct Case {
    std::int64_t side, channels, chunk, samples;
  };
  for (const auto& [side, channels, chunk, samples] : {Case{28, 1, 1, 64}, Case{1024, 3, 6, 12}}) {
    SCOPED_TRACE(side);
    const std::string path = folder_.file(std::to_string(side) + ".h5");
    DatasetWriter writer(
        path, {.num_samples = samples, .height = side, .width = side, .channels = channels},
        {.chunk_samples = chunk});
    const std::vector<std::byte> rows(static_cast<std::size_t>(chunk * side * side * channels));
    for (std::int64_t i = 0; i < writer.num_chunks(); ++i) writer.write_chunk(i, rows);
    writer.close();
    const Loader loader(Dataset::open(path), {.batch_size = 4, .io = {.num_threads = 2}});
    const StageRates alone = measure_stages(loader, 0.01);
    EXPECT_DOUBLE_EQ(alone.stored_bytes_per_sample, static_cast<double>(side * side * channels));
    const std::int64_t group_bytes = loader.row_groups().group_samples() * side * side * channels;
    EXPECT_NE(alone.request_bytes, group_bytes) << "clamped";
  }
}

TEST_F(StageRatesTest, ThreadsThatWaitForEachOtherAreNotCounted) {
  LoaderOptions many = options();
  many.io.num_threads = base::usable_cpus() + 3;
  const std::string path = make_file({});
  EXPECT_EQ(measure_stages(Loader(Dataset::open(path), many), 0.01).busy_threads,
            base::usable_cpus());
  many.io.source = SourceKind::hdf5;
  EXPECT_EQ(measure_stages(Loader(Dataset::open(path), many), 0.01).busy_threads, 1);
}

TEST_F(StageRatesTest, ImagesInOtherFilesAreNoDiskThatIsMeasured) {
  const std::string path = test::h5py_file(folder_, "external_storage");
  const Loader loader(Dataset::open(path, {.allow_external = true}), {.batch_size = 2});
  const StageRates alone = measure_stages(loader, 0.01);
  EXPECT_FALSE(alone.no_disk.empty());
  EXPECT_EQ(alone.disk_bytes_per_second, 0);
  EXPECT_GT(alone.processor_bytes_per_second, 0);
}

TEST_F(StageRatesTest, NonsenseTimesAreRefused) {
  const Loader loader(Dataset::open(make_file({})), options());
  for (const double seconds : {0.0, -1.0, 61.0, std::nan("")}) {
    test::expect_error(ErrorCode::invalid_argument, {"60 seconds"},
                       [&] { static_cast<void>(measure_stages(loader, seconds)); });
  }
}

TEST_F(StageRatesTest, StatisticsSinceAreThoseOfTheBatchesBetween) {
  Loader loader(Dataset::open(make_file({})), options());
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  const LoaderStats first = loader.stats();
  ASSERT_TRUE(loader.next());
  ASSERT_TRUE(loader.next());
  const LoaderStats between = loader.stats().since(first);
  EXPECT_EQ(between.batches, 2);
  EXPECT_EQ(between.images, 64);
  EXPECT_EQ(between.bytes_delivered, 64 * kSide * kSide * 3);
  EXPECT_EQ(between.num_threads, 2);
  EXPECT_DOUBLE_EQ(between.seconds, loader.stats().seconds - first.seconds);
  EXPECT_NE(between.bottleneck().bottleneck, Bottleneck::none);
}

}  // namespace
}  // namespace chunkio
