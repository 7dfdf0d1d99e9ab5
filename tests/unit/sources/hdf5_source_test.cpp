#include "sources/hdf5_source.hpp"

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "support/h5_files.hpp"
#include "support/placed_rows.hpp"

namespace chunkio::sources {
namespace {

/// Places `wanted` rows of a group and compares them with the pattern. \returns bytes read.
std::int64_t expect_rows(const Hdf5Source& source, const Dataset& dataset, const RowGroup& group,
                         const std::vector<std::uint32_t>& wanted) {
  const std::int64_t bytes = dataset.info().sample_bytes();
  return test::place_rows(source, group, wanted, bytes,
                          [&](std::int64_t row) { return test::pattern_rows(row, 1, bytes); })
      .bytes_read;
}

TEST(Hdf5Source, FarRowsAreReadWithoutWhatLiesBetween) {
  test::ScratchFolder folder;
  DatasetSpec spec = test::small_spec(64);
  spec.height = 100;
  spec.width = 100;
  {
    DatasetWriter writer(folder.file("a.h5"), spec, {.chunk_samples = 32});
    test::write_pattern(writer, spec);
    writer.close();
  }
  const Dataset dataset = Dataset::open(folder.file("a.h5"));
  const Hdf5Source source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                          internal::Access::impl(dataset)->bytes, 32);
  EXPECT_EQ(expect_rows(source, dataset, {32, 32}, {1, 30}), 2 * 30000);
  // Two rows apart by less than a call costs: read in one sweep.
  EXPECT_EQ(expect_rows(source, dataset, {32, 32}, {1, 3}), 3 * 30000);
  EXPECT_EQ(expect_rows(source, dataset, {32, 32}, {}), 0);
}

TEST(Hdf5Source, MemoryCountsScratchAndCache) {
  test::ScratchFolder folder;
  const Dataset cut = Dataset::open(test::h5py_file(folder, "celeba_chunks"));
  const Hdf5Source source(internal::Access::impl(cut), internal::Access::impl(cut)->leading,
                          internal::Access::impl(cut)->bytes, 100);
  const std::int64_t group_bytes = 2 * 100 * 3 * 217 * 178;
  EXPECT_GE(source.memory_bytes(1), 2 * group_bytes);
  const std::int64_t scratch = source.memory_bytes(2) - source.memory_bytes(1);
  EXPECT_GE(scratch, 100 * 3 * 218 * 178);
  EXPECT_LE(scratch, (32 << 20) + (2 << 20));
}

TEST(Hdf5Source, DamagedChunksAreErrors) {
  test::ScratchFolder folder;
  const std::string path = test::h5py_file(folder, "fletcher");
  auto bytes = test::read_bytes(path);
  // One byte of pixels: found by its neighbours, as the checksum leaves data itself unchanged.
  const std::vector<std::uint8_t> start = {static_cast<std::uint8_t>(test::pattern(0, 0)),
                                           static_cast<std::uint8_t>(test::pattern(0, 1)),
                                           static_cast<std::uint8_t>(test::pattern(0, 3)),
                                           static_cast<std::uint8_t>(test::pattern(0, 4))};
  const auto found = std::search(bytes.begin(), bytes.end(), start.begin(), start.end());
  ASSERT_NE(found, bytes.end());
  ++*found;
  test::write_bytes(path, bytes);
  const Dataset dataset = Dataset::open(path);
  const Hdf5Source source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                          internal::Access::impl(dataset)->bytes, 7);
  test::expect_error(ErrorCode::corrupt_data, {path, "rows 0 to 6", "fletcher32"}, [&] {
    expect_rows(source, dataset, {0, 7}, {0});
  });
}

}  // namespace
}  // namespace chunkio::sources
