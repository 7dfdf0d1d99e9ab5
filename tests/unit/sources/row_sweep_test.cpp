#include "sources/row_sweep.hpp"

#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/host_memory.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

class RowSweepTest : public ::testing::TestWithParam<bool> {
 protected:
  /// A file of random bytes.
  void make_file(std::size_t size) {
    bytes_.resize(size);
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random_());
    test::write_bytes(folder_.file("rows"), bytes_);
    source_ = std::make_shared<io::LocalFile>(folder_.file("rows"));
    if (GetParam()) source_ = io::direct_if_possible(source_);
    reader_.emplace(*source_);
  }

  ReadCost sweep(const StoredRows& stored, const std::vector<RowTarget>& rows,
                 std::int64_t piece_bytes, const std::stop_token& stop = {}) {
    const base::HostBuffer scratch(reader_->scratch_bytes(piece_bytes));
    ReadCost cost;
    sweep_rows(io::RangeReader(*source_, piece_bytes), stored, rows, scratch.bytes(), stop, cost,
               [](const RowTarget& row, std::int64_t from, std::span<const std::byte> bytes) {
                 std::copy(bytes.begin(), bytes.end(), row.target + from);
               });
    return cost;
  }

  test::ScratchFolder folder_;
  std::mt19937_64 random_{test::test_seed()};
  std::vector<std::uint8_t> bytes_;
  std::shared_ptr<const ByteSource> source_;
  std::optional<io::RangeReader> reader_;
};

TEST_P(RowSweepTest, BringsAnyRowsAlsoTwice) {
  make_file(600'000);
  // Each small piece is a request to the disk if the page cache is left out.
  for (int round = 0; round < (GetParam() ? 20 : 200); ++round) {
    const auto row_bytes = static_cast<std::int64_t>(1 + random_() % (round % 2 == 0 ? 100 : 9000));
    const auto piece_bytes = static_cast<std::int64_t>(1 + random_() % 5000);
    // The first rows of the group may lie before the file: only wanted ones must be there.
    const auto skipped = static_cast<std::int64_t>(random_() % 3);
    const StoredRows stored{static_cast<std::int64_t>(random_() % 5000) - skipped * row_bytes,
                            row_bytes};
    std::vector<RowTarget> rows;
    for (std::int64_t row = skipped; row < 64; row += random_() % 8 == 0 ? 0 : 1) {
      if (stored.offset + (row + 1) * row_bytes > static_cast<std::int64_t>(bytes_.size())) break;
      if (random_() % 3 != 0) rows.push_back({static_cast<std::uint32_t>(row), nullptr});
    }
    if (rows.empty()) continue;
    std::vector<std::vector<std::byte>> targets(
        rows.size(), std::vector<std::byte>(static_cast<std::size_t>(row_bytes)));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].target = targets[i].data();
    const ReadCost cost = sweep(stored, rows, piece_bytes);
    EXPECT_GE(cost.bytes_read, row_bytes);
    EXPECT_GE(cost.read_seconds + cost.copy_seconds, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto* expected = reinterpret_cast<const std::byte*>(bytes_.data()) + stored.offset +
                             rows[i].row * row_bytes;
      ASSERT_TRUE(std::equal(targets[i].begin(), targets[i].end(), expected))
          << "row " << rows[i].row << " of " << row_bytes << " bytes at " << stored.offset
          << ", pieces of " << piece_bytes;
    }
  }
}

TEST_P(RowSweepTest, LeavesLargeHolesOut) {
  make_file(1 << 20);
  std::vector<std::byte> target(200);
  const std::vector<RowTarget> rows{{0, target.data()}, {9000, target.data() + 100}};
  EXPECT_LE(sweep({0, 100}, rows, 512 << 10).bytes_read, GetParam() ? 3 * 4096 : 200);
  const std::vector<RowTarget> close{{0, target.data()}, {10, target.data() + 100}};
  const std::int64_t bytes_read = sweep({0, 100}, close, 512 << 10).bytes_read;
  EXPECT_GE(bytes_read, 1100);
  EXPECT_LE(bytes_read, source_->block_bytes() > 1 ? 4096 : 1100);
}

TEST_P(RowSweepTest, EndOfFileAndRequestsToStopAreErrors) {
  make_file(10'001);
  std::vector<std::byte> target(100);
  const std::vector<RowTarget> last{{0, target.data()}};
  (void)sweep({9'901, 100}, last, 4096);
  EXPECT_EQ(std::to_integer<int>(target.back()), bytes_.back());
  test::expect_error(ErrorCode::corrupt_data, {folder_.file("rows"), "ends at byte 10001"}, [&] {
    (void)sweep({9'902, 100}, last, 4096);
  });
  test::expect_error(ErrorCode::corrupt_data, {"ends at byte"}, [&] {
    (void)sweep({1 << 20, 100}, last, 4096);
  });
  std::stop_source stop;
  stop.request_stop();
  test::expect_error(ErrorCode::cancelled, {"stopped"}, [&] {
    (void)sweep({0, 100}, last, 4096, stop.get_token());
  });
}

INSTANTIATE_TEST_SUITE_P(RowSweep, RowSweepTest, ::testing::Values(false, true),
                         [](const auto& instance) {
                           return std::string(instance.param ? "RoundThePageCache"
                                                             : "ThroughThePageCache");
                         });

}  // namespace
}  // namespace chunkio::sources
