#include "h5pack/dataset/selected_field.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace h5pack {
namespace {

using chunkio::Dataset;
using Rows = std::vector<std::int64_t>;

class SelectedFieldTest : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3000;

  SelectedFieldTest() {
    chunkio::test::write_packed(scratch_.file("a.h5"), {.num_samples = kRows});
  }

  /// Everything the field streams, and the size of its largest block.
  static std::pair<std::vector<std::byte>, std::size_t> collect(const chunkio::FieldData& field) {
    std::vector<std::byte> all;
    std::size_t largest = 0;
    field.for_each_block([&](std::span<const std::byte> rows) {
      all.insert(all.end(), rows.begin(), rows.end());
      largest = std::max(largest, rows.size());
    });
    return {all, largest};
  }

  chunkio::test::ScratchFolder scratch_;
};

TEST_F(SelectedFieldTest, GivesTheRowsInTheirOrderWithinItsMemory) {
  const Dataset dataset = Dataset::open(scratch_.file("a.h5"));
  Rows all(kRows);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  Rows shuffled = all;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(3));
  Rows few(shuffled.begin(), shuffled.begin() + 5);
  Rows gaps;  // Rows of 8 bytes more than 4096 bytes apart are read one by one.
  for (std::int64_t row = 2999; row >= 0; row -= 600) gaps.push_back(row);
  for (const Rows& rows : {all, shuffled, few, gaps}) {
    std::vector<float> weights;
    std::vector<std::int64_t> labels;
    for (const std::int64_t row : rows) {
      weights.push_back(static_cast<float>(row));
      weights.push_back(-static_cast<float>(row));
      labels.push_back(chunkio::test::label_of(row));
    }
    for (const std::int64_t memory : {1, 100, 8192, 1 << 20}) {
      const auto selected =
          selected_field(dataset, *dataset.find_field("weights"), rows, memory, "w");
      EXPECT_EQ(selected.info.name, "w");
      EXPECT_TRUE(selected.values.empty());
      for (int time = 0; time < 2; ++time) {
        const auto [found, largest] = collect(selected);
        EXPECT_TRUE(found == chunkio::test::as_bytes(weights));
        EXPECT_LE(static_cast<std::int64_t>(largest), std::max<std::int64_t>(memory, 8));
      }
      EXPECT_TRUE(
          collect(selected_field(dataset, *dataset.info().labels, rows, memory, "labels")).first ==
          chunkio::test::as_bytes(labels));
    }
  }
}

TEST_F(SelectedFieldTest, SourceRowsAreRowNumbersWhereTheFileHasNone) {
  const Dataset dataset = Dataset::open(scratch_.file("a.h5"));
  const Rows rows = {5, 2, 7};
  const auto field = selected_source_index(dataset, rows, 1 << 20);
  EXPECT_EQ(field.info.name, "source_index");
  EXPECT_TRUE(collect(field).first == chunkio::test::as_bytes(rows));
}

}  // namespace
}  // namespace h5pack
