#include "h5pack/pack/repack_rows.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace h5pack {
namespace {

using chunkio::Dataset;
using chunkio::ErrorCode;
using chunkio::test::expect_error;
using Rows = std::vector<std::int64_t>;

TEST(ParseSplit, TakesTwoOrThreeProportions) {
  EXPECT_EQ(parse_split("0.9:0.1"), (std::vector<double>{0.9, 0.1}));
  EXPECT_EQ(parse_split("8:1:1"), (std::vector<double>{8, 1, 1}));
  EXPECT_EQ(split_names(2), (std::vector<std::string>{"train", "test"}));
  EXPECT_EQ(split_names(3), (std::vector<std::string>{"train", "val", "test"}));
}

TEST(ParseSplit, RefusesEverythingElse) {
  for (const std::string text : {"", "1", ":", "1:", ":1", "1:0", "1:-1", "1:nan", "1:inf", "1::1",
                                 "1:1:1:1", "1;1", "1:1 ", "a:b", "1e999:1"}) {
    expect_error(ErrorCode::invalid_argument, {"--split", "'" + text + "'"},
                 [&] { (void)parse_split(text); });
  }
}

class ChooseRowsTest : public testing::Test {
 protected:
  /// Labels of row i are label_of(i).
  Dataset packed(std::int64_t num_samples) {
    const std::string path = scratch_.file(std::to_string(num_samples) + ".h5");
    chunkio::test::write_packed(path, {.num_samples = num_samples});
    return Dataset::open(path);
  }

  chunkio::test::ScratchFolder scratch_;
};

TEST_F(ChooseRowsTest, EveryRowGoesToExactlyOnePartOfTheSizeAskedFor) {
  std::mt19937_64 random(chunkio::test::test_seed());
  for (const std::int64_t n : {2, 7, 100, 1003}) {
    const Dataset dataset = packed(n);
    for (const std::vector<double>& split :
         {std::vector<double>{1, 1}, std::vector<double>{0.7, 0.3}}) {
      for (const RepackOrder order : {RepackOrder::stored, RepackOrder::shuffled}) {
        const RepackSelection selection{.split = split, .order = order, .seed = random()};
        const std::vector<Rows> parts = choose_rows(dataset, selection);
        ASSERT_EQ(parts.size(), 2U);
        EXPECT_NEAR(static_cast<double>(parts[0].size()),
                    static_cast<double>(n) * split[0] / (split[0] + split[1]), 0.51);
        EXPECT_EQ(choose_rows(dataset, selection), parts) << "not the same twice";
        Rows all = parts[0];
        all.insert(all.end(), parts[1].begin(), parts[1].end());
        std::sort(all.begin(), all.end());
        Rows expected(static_cast<std::size_t>(n));
        std::iota(expected.begin(), expected.end(), std::int64_t{0});
        EXPECT_EQ(all, expected);
      }
    }
  }
}

TEST_F(ChooseRowsTest, StratifiedPartsHaveTheirShareOfEachClass) {
  const Dataset dataset = packed(1000);
  const std::vector<Rows> parts =
      choose_rows(dataset, {.split = {8, 1, 1}, .stratify = true, .seed = 3});
  for (const auto& [part, share] : {std::pair{0, 80}, {1, 10}, {2, 10}}) {
    std::vector<int> counts(10);
    for (const std::int64_t row : parts[static_cast<std::size_t>(part)]) {
      ++counts[static_cast<std::size_t>(chunkio::test::label_of(row))];
    }
    EXPECT_EQ(counts, std::vector<int>(10, share)) << part;
  }
}

TEST_F(ChooseRowsTest, AnotherSeedGivesOtherParts) {
  const Dataset dataset = packed(100);
  const auto with_seed = [&](std::uint64_t seed) {
    return choose_rows(dataset, {.split = {1, 1}, .seed = seed});
  };
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST_F(ChooseRowsTest, SourceOrderFollowsTheSourceRows) {
  const std::string path = scratch_.file("b.h5");
  const chunkio::DatasetSpec spec = chunkio::test::small_spec(9);  // row i was source row 8 - i
  chunkio::DatasetWriter writer(path, spec, {});
  chunkio::test::write_pattern(writer, spec);
  writer.close();
  const RepackSelection selection{.rows = chunkio::RowSelection({{2, 5}, {7, 8}}),
                                  .order = RepackOrder::source};
  EXPECT_EQ(choose_rows(Dataset::open(path), selection), (std::vector<Rows>{{7, 4, 3, 2}}));
  // Without source rows it is the order of the file.
  EXPECT_EQ(choose_rows(packed(9), selection), (std::vector<Rows>{{2, 3, 4, 7}}));
}

TEST_F(ChooseRowsTest, WhatCannotBeChosenIsRefused) {
  const Dataset dataset = packed(10);
  expect_error(ErrorCode::invalid_argument, {"--rows", "10 rows", "number 11"}, [&] {
    (void)choose_rows(dataset, {.rows = chunkio::RowSelection({{3, 12}})});
  });
  expect_error(ErrorCode::invalid_argument, {"leave no sample"},
               [&] { (void)choose_rows(dataset, {.labels = {77}}); });
  expect_error(ErrorCode::invalid_argument, {"no sample for test.h5"}, [&] {
    (void)choose_rows(dataset, {.rows = chunkio::RowSelection({{3, 4}}), .split = {9, 1}});
  });
  const Dataset foreign = Dataset::open(chunkio::test::h5py_file(scratch_, "attribute_table"));
  for (const RepackSelection& selection :
       {RepackSelection{.labels = {1}}, RepackSelection{.split = {1, 1}, .stratify = true}}) {
    expect_error(ErrorCode::invalid_argument, {"table of attributes", "--label-field"},
                 [&] { (void)choose_rows(foreign, selection); });
  }
}

}  // namespace
}  // namespace h5pack
