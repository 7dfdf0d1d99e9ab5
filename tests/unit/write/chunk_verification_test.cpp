#include "write/chunk_verification.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::write {
namespace {

constexpr PieceSize kSize{.rows = 3, .row_bytes = 1000};
constexpr std::int64_t kBegin = 77;  // of the first piece
constexpr std::int64_t kNumPieces = 10;

class ReadBackTest : public testing::Test {
 protected:
  ReadBackTest() {
    for (std::int64_t i = 0; i < kNumPieces; ++i) {
      const std::vector<std::uint64_t> rows = row_digests(i);
      pieces_.push_back({.file_offset = kBegin + i * kSize.bytes(),
                         .digest = base::digest(std::as_bytes(std::span(rows)))});
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> row_digests(std::int64_t piece) const {
    std::vector<std::uint64_t> digests;
    for (std::int64_t row = 0; row < kSize.rows; ++row) {
      const std::int64_t begin = kBegin + piece * kSize.bytes() + row * kSize.row_bytes;
      digests.push_back(
          base::digest(std::as_bytes(std::span(file_.bytes)
                                         .subspan(static_cast<std::size_t>(begin),
                                                  static_cast<std::size_t>(kSize.row_bytes)))));
    }
    return digests;
  }

  /// What find_damaged() returns. All others have to be told, with their digests.
  [[nodiscard]] std::vector<std::size_t> damaged() {
    std::mutex mutex;
    std::map<std::size_t, std::vector<std::uint64_t>> sound;
    const std::vector<std::size_t> damaged = find_damaged(
        file_.file->fd(), pieces_, kSize, file_.file->name(), {},
        [&](std::size_t piece, std::span<const std::uint64_t> rows) {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(sound.emplace(piece, std::vector(rows.begin(), rows.end())).second);
        });
    EXPECT_EQ(sound.size() + damaged.size(), pieces_.size());
    for (const auto& [piece, rows] : sound) {
      EXPECT_EQ(rows, row_digests((pieces_[piece].file_offset - kBegin) / kSize.bytes()));
    }
    return damaged;
  }

  test::ScratchFolder folder_;
  test::NoiseFile file_{folder_.file("file"),
                        static_cast<std::size_t>(kBegin + kNumPieces * kSize.bytes())};
  std::vector<ExpectedBytes> pieces_;
};

TEST_F(ReadBackTest, FindsThePiecesThatAreNotWhatTheyShouldBe) {
  EXPECT_TRUE(damaged().empty());
  pieces_[0].digest ^= 1;
  pieces_[6].digest ^= 1;
  EXPECT_EQ(damaged(), (std::vector<std::size_t>{0, 6}));
}

TEST_F(ReadBackTest, TakesPiecesInAnyOrder) {
  std::swap(pieces_[2], pieces_[7]);
  pieces_.erase(pieces_.begin() + 5);
  pieces_[7].digest ^= 1;
  EXPECT_EQ(damaged(), (std::vector<std::size_t>{7}));
}

/// Pieces that lie one behind the other are read at once, which fails for all of them.
TEST_F(ReadBackTest, OneThatCannotBeReadTakesNoOthersWithIt) {
  std::filesystem::resize_file(file_.file->name(),
                               static_cast<std::uintmax_t>(kBegin + 7 * kSize.bytes() + 50));
  EXPECT_EQ(damaged(), (std::vector<std::size_t>{7, 8, 9}));
}

}  // namespace
}  // namespace chunkio::write
