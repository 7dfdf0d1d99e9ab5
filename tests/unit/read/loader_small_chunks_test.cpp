/// Files of small chunks, which version 2 of the order merges into row groups.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "support/delivered_rows.hpp"
#include "support/packed_loader.hpp"
#include "support/shard_fixture.hpp"

namespace chunkio {
namespace {

using test::expect_error;
using test::Rows;

constexpr std::int64_t kRowBytes = 8 * 8 * 3;
/// Half a window of 128 rows, so that groups are 128 chunks of one image, two a window.
constexpr std::int64_t kWindowBytes = 256 * kRowBytes;

LoaderOptions small_options(std::int64_t version = 2) {
  return {.batch_size = 50, .seed = 7, .order = {.window_bytes = kWindowBytes, .version = version}};
}

/// What is left of the epoch that a loader is in.
Rows rest(Loader& loader) {
  Rows rows;
  while (const auto batch = loader.next()) {
    rows.insert(rows.end(), batch->sample_ids().begin(), batch->sample_ids().end());
  }
  return rows;
}

/// By the definition of the order, from the groups that it has.
Rows expected_rows(const std::vector<std::int64_t>& files, std::int64_t k, std::int64_t window,
                   const LoaderOptions& options, std::int64_t epoch) {
  return test::rows_of(EpochOrder(RowGroups(k, files),
                                  {.mode = options.order.mode,
                                   .seed = options.seed,
                                   .batch_size = options.batch_size,
                                   .window_groups = window,
                                   .rank = options.ranks.rank,
                                   .world_size = options.ranks.world_size,
                                   .lanes = options.order.lanes,
                                   .uneven = options.order.uneven},
                                  epoch));
}

struct Way {
  const char* file = "";
  SourceKind source = SourceKind::automatic;
  bool direct_io = false;
};

class SmallChunksTest : public testing::TestWithParam<Way> {};

TEST_P(SmallChunksTest, GiveTheOrderOfTheirVersion) {
  const test::ScratchFolder folder;
  const Dataset dataset = Dataset::open(test::h5py_file(folder, GetParam().file));
  for (const std::int64_t version : {1, 2}) {
    SCOPED_TRACE(version);
    LoaderOptions options = small_options(version);
    options.io.source = GetParam().source;
    options.io.direct_io = GetParam().direct_io;
    options.io.num_threads = 2;
    Loader loader(dataset, options);
    const std::int64_t k = version == 1 ? 1 : 128;
    EXPECT_EQ(loader.row_groups().group_samples(), k);
    EXPECT_EQ(loader.window_groups(), 256 / k);
    for (const std::int64_t epoch : {0, 1, 5}) {
      EXPECT_EQ(test::delivered_rows(loader, epoch),
                expected_rows({1000}, k, 256 / k, options, epoch));
    }
    EXPECT_NE(loader.state().find("{\"chunkio_state\":" + std::to_string(version)),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SmallChunksTest,
    testing::Values(Way{"one_image_chunks"}, Way{"one_image_chunks", SourceKind::mapped},
                    Way{"one_image_chunks", SourceKind::scatter},
                    Way{"one_image_chunks", SourceKind::direct},
                    Way{"one_image_chunks", SourceKind::hdf5},
                    Way{"one_image_chunks", SourceKind::direct, true},
                    Way{"one_image_chunks", SourceKind::scatter, true}, Way{"one_image_deflate"},
                    Way{"one_image_deflate", SourceKind::hdf5},
                    Way{"one_image_deflate", SourceKind::direct, true}, Way{"one_image_filters"},
                    Way{"one_image_extensible"}, Way{"scattered"},
                    Way{"scattered", SourceKind::mapped}, Way{"scattered", SourceKind::scatter},
                    Way{"scattered", SourceKind::direct, true}, Way{"deep_tree"},
                    Way{"tree_header_2"}, Way{"tree_user_block"}),
    [](const auto& param) {
      return std::string(param.param.file) + "_" + std::string(to_string(param.param.source)) +
             (param.param.direct_io ? "_direct_io" : "");
    });

TEST(SmallChunks, RowsThatChunksCutAndHolesAreWhatLibhdf5Reads) {
  const test::ScratchFolder folder;
  for (const char* name :
       {"scattered_holes", "scattered_cut", "scattered_cut_deflate", "deep_tree_cut"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = Dataset::open(test::h5py_file(folder, name));
    const std::int64_t row_bytes = dataset.info().sample_bytes();
    std::vector<std::byte> all(static_cast<std::size_t>(dataset.size() * row_bytes));
    dataset.read_images(0, dataset.size(), all);
    LoaderOptions options = small_options();
    for (const bool direct_io : {false, true}) {
      options.io.direct_io = direct_io;
      Loader loader(dataset, options);
      EXPECT_GT(loader.row_groups().group_samples(), 50);
      std::set<std::int64_t> seen;
      for (const Batch& batch : loader.epoch(0)) {
        const std::byte* image = batch.images().data();
        for (const std::int64_t row : batch.sample_ids()) {
          EXPECT_TRUE(std::equal(image, image + row_bytes, all.data() + row * row_bytes)) << row;
          image += row_bytes;
          seen.insert(row);
        }
      }
      EXPECT_EQ(std::ssize(seen), dataset.size());
    }
  }
}

TEST(SmallChunks, WellChunkedFilesHaveTheOrderAndTheStatesOfVersion1) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("large.h5");
  // Chunks of 1 MiB.
  const test::PackedFile file{
      .num_samples = 20, .height = 256, .width = 512, .channels = 1, .chunk_samples = 8};
  test::write_packed(path, file);
  const Dataset dataset = Dataset::open(path);
  std::vector<std::string> states;
  for (const std::int64_t version : {1, 2}) {
    Loader loader(dataset, {.batch_size = 3, .order = {.version = version}});
    EXPECT_EQ(loader.row_groups().group_samples(), 8);
    loader.start_epoch(0);
    (void)loader.next();
    states.push_back(loader.state());
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(states[1].find("{\"chunkio_state\":1,"), 0U);
}

TEST(SmallChunks, StatesOfEitherVersionGoOnAsTheyWere) {
  const test::ScratchFolder folder;
  const Dataset dataset = Dataset::open(test::h5py_file(folder, "one_image_deflate"));
  for (const std::int64_t version : {1, 2}) {
    for (const OrderMode mode :
         {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
      LoaderOptions options = small_options(version);
      options.order.mode = mode;
      Loader whole(dataset, options);
      whole.start_epoch(3);
      for (int i = 0; i < 7; ++i) (void)whole.next();
      const std::string state = whole.state();
      const Rows expected = rest(whole);
      // Whatever the options say of the version and the window.
      for (const std::int64_t other : {1, 2}) {
        LoaderOptions resumed_options = options;
        resumed_options.order.version = other;
        resumed_options.order.window_bytes = kDefaultWindowBytes;
        Loader resumed = Loader::resume(dataset, resumed_options, state);
        EXPECT_EQ(resumed.options().order.version, version);
        EXPECT_EQ(rest(resumed), expected);
        EXPECT_EQ(test::delivered_rows(resumed, 4), test::delivered_rows(whole, 4));
      }
      // A loader that is there already needs the same version.
      LoaderOptions other = options;
      other.order.version = 3 - version;
      Loader loader(dataset, other);
      expect_error(ErrorCode::invalid_argument,
                   {dataset.info().path,
                    "version of the order is " + std::to_string(version) + " in the state and " +
                        std::to_string(3 - version) + " here",
                    "options that the state was taken with"},
                   [&] { loader.restore(state); });
    }
  }
}

TEST(SmallChunks, RanksAndLanesShareMergedGroups) {
  const test::ScratchFolder folder;
  const Dataset dataset = Dataset::open(test::h5py_file(folder, "one_image_chunks"));
  std::vector<std::vector<Rows>> runs;
  for (const std::int64_t world_size : {1, 2, 4}) {
    std::vector<Rows> steps;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      LoaderOptions options = small_options();
      options.batch_size = 48 / world_size;
      options.order.lanes = 4;
      options.ranks = {.rank = rank, .world_size = world_size};
      Loader loader(dataset, options);
      EXPECT_EQ(loader.row_groups().group_samples(), 128);
      EXPECT_EQ(test::delivered_rows(loader, 2), expected_rows({1000}, 128, 2, options, 2));
      loader.start_epoch(2);
      for (std::size_t step = 0; const auto batch = loader.next(); ++step) {
        if (rank == 0) steps.emplace_back();
        const auto ids = batch->sample_ids();
        steps.at(step).insert(steps.at(step).end(), ids.begin(), ids.end());
      }
    }
    runs.push_back(std::move(steps));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
  // Going on with another number of ranks.
  LoaderOptions options = small_options();
  options.batch_size = 48;
  options.order.lanes = 4;
  Loader one(dataset, options);
  one.start_epoch(2);
  for (int i = 0; i < 5; ++i) (void)one.next();
  const std::string state = one.state();
  Rows together;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    LoaderOptions two = options;
    two.ranks = {.rank = rank, .world_size = 2};
    Loader loader = Loader::resume(dataset, two, state);
    const auto batch = loader.next();
    together.insert(together.end(), batch->sample_ids().begin(), batch->sample_ids().end());
  }
  EXPECT_EQ(together, runs[0].at(5));
}

TEST(SmallChunks, ASelectionKeepsTheGroups) {
  const test::ScratchFolder folder;
  const Dataset dataset = Dataset::open(test::h5py_file(folder, "scattered"));
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 3; row < 1000; row += row % 5 + 1) rows.push_back(row);
  LoaderOptions options = small_options();
  options.rows = RowSelection::of(rows);
  Loader loader(dataset, options);
  EXPECT_EQ(loader.row_groups().group_samples(), 128);
  EXPECT_EQ(test::delivered_rows(loader, 1),
            test::rows_of(EpochOrder(RowGroups(128, 1000, *options.rows),
                                     {.seed = 7, .batch_size = 50, .window_groups = 2}, 1)));
}

class SmallChunksOfFilesTest : public test::ShardsTest {};

TEST_F(SmallChunksOfFilesTest, AreMergedFileByFile) {
  const std::string pattern = write({120, 35, 211, 9});
  LoaderOptions options = small();
  options.order.window_bytes = 8 * test::kChunk * 60;
  for (const std::int64_t version : {1, 2}) {
    options.order.version = version;
    Loader loader(Dataset::open(pattern), options);
    const std::int64_t k = version == 1 ? test::kChunk : 4 * test::kChunk;
    EXPECT_EQ(loader.row_groups().group_samples(), k);
    EXPECT_EQ(loader.row_groups().num_groups(), version == 1 ? 18 + 5 + 31 + 2 : 5 + 2 + 8 + 1);
    for (const std::int64_t epoch : {0, 1}) {
      EXPECT_EQ(test::rows_of(loader, epoch),
                expected_rows({120, 35, 211, 9}, k, 8 * test::kChunk / k, options, epoch));
    }
  }
}

// ---- Damage ----

/// Damages the stored bytes of some chunks of one image.
void damage_chunks(const std::string& path, const std::vector<std::int64_t>& chunks) {
  std::vector<h5::ChunkEntry> entries;
  {
    const Dataset dataset = Dataset::open(path);
    for (const std::int64_t chunk : chunks) {
      const std::array<std::int64_t, 4> coord{chunk, 0, 0, 0};
      entries.push_back(internal::Access::impl(dataset)->leading->index->find(coord));
    }
  }
  auto bytes = test::read_bytes(path);
  for (const h5::ChunkEntry& entry : entries) {
    for (std::int64_t i = 2; i < entry.stored_bytes; ++i) {
      bytes[static_cast<std::size_t>(entry.file_offset + i)] ^= 0x55;
    }
  }
  test::write_bytes(path, bytes);
}

TEST(SmallChunks, OneThatIsDamagedLosesItsImageAlone) {
  const test::ScratchFolder folder;
  const std::string path = test::h5py_file(folder, "one_image_filters");
  damage_chunks(path, {17, 18, 500});
  const Dataset dataset = Dataset::open(path);
  for (const SourceKind source : {SourceKind::automatic, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(source));
    LoaderOptions options = small_options();
    options.io.source = source;
    options.io.on_error = OnError::skip;
    Loader loader(dataset, options);
    Rows rows = test::delivered_rows(loader, 0);
    std::sort(rows.begin(), rows.end());
    Rows expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    for (const std::int64_t row : {500, 18, 17}) expected.erase(expected.begin() + row);
    EXPECT_EQ(rows, expected);
    std::int64_t skipped = 0;
    for (const SkippedRows& run : loader.skipped()) skipped += run.num_rows;
    EXPECT_EQ(skipped, 3);

    options.io.on_error = OnError::raise;
    Loader raising(dataset, options);
    raising.start_epoch(0);
    expect_error(ErrorCode::corrupt_data, {path, "images", "is damaged", "copy or download"},
                 [&] { rest(raising); });
  }
}

/// The index of an early file has no checksum: of a node that cannot be true its own chunks are
/// lost.
TEST(SmallChunks, ANodeOfTheIndexThatIsDamagedLosesItsChunks) {
  const test::ScratchFolder folder;
  const std::string path = test::h5py_file(folder, "one_image_chunks");
  auto bytes = test::read_bytes(path);
  std::vector<std::size_t> leaves;
  for (std::size_t at = 0; at + 8 < bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, "TREE\1\0", 6) == 0) leaves.push_back(at);
  }
  ASSERT_GT(leaves.size(), 10U);
  bytes[leaves[5]] = 'X';
  test::write_bytes(path, bytes);
  LoaderOptions options = small_options();
  options.io.on_error = OnError::skip;
  Loader loader(Dataset::open(path), options);
  const Rows rows = test::delivered_rows(loader, 0);
  EXPECT_LT(rows.size(), 1000U);
  EXPECT_GE(rows.size(), 1000U - 64);
  for (const SkippedRows& run : loader.skipped()) {
    EXPECT_NE(run.reason.find("one_image_chunks.h5"), std::string::npos) << run.reason;
  }
}

}  // namespace
}  // namespace chunkio
