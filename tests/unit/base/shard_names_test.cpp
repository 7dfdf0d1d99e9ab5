#include "base/shard_names.hpp"

#include <string>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

using base::ShardPattern;

TEST(ShardNames, StandBeforeTheExtension) {
  EXPECT_EQ(shard_path("train.h5", 3, 8), "train-00003-of-00008.h5");
  EXPECT_EQ(shard_path("a.b/train", 0, 1), "a.b/train-00000-of-00001");
  EXPECT_EQ(shard_path("/data/.hidden", 1, 2), "/data/.hidden-00001-of-00002");
  EXPECT_EQ(shard_path("v1.2.h5", 4095, 4096), "v1.2-04095-of-04096.h5");
  EXPECT_EQ(shard_pattern("data/train.h5", 8), "data/train-*-of-00008.h5");
}

TEST(ShardNames, RefuseImpossibleNumbers) {
  struct Case {
    std::int64_t index, count;
    std::string named;
  };
  for (const Case& wrong :
       {Case{-1, 2, "no shard -1 of 2"}, Case{2, 2, "no shard 2 of 2"}, Case{0, 0, "not 0"},
        Case{0, -1, "not -1"}, Case{0, 4097, "not 4097"}}) {
    test::expect_error(ErrorCode::invalid_argument, {wrong.named},
                       [&] { (void)shard_path("x.h5", wrong.index, wrong.count); });
  }
  test::expect_error(ErrorCode::invalid_argument, {"4096", "4097"},
                     [] { (void)shard_pattern("x.h5", 4097); });
  test::expect_error(ErrorCode::invalid_argument, {"00000"},
                     [] { (void)ShardPattern::parse("x-*-of-00000.h5"); });
  test::expect_error(ErrorCode::invalid_argument, {"99999999999999999999"},
                     [] { (void)ShardPattern::parse("x-*-of-99999999999999999999.h5"); });
}

TEST(ShardNames, APatternNamesItsFilesAsTheyWereWritten) {
  for (const std::string name : {"train.h5", "a/b.c/train", "%5-of-3.h5"}) {
    const auto pattern = ShardPattern::parse(shard_pattern(name, 12));
    ASSERT_TRUE(pattern) << name;
    EXPECT_EQ(pattern->count, 12);
    EXPECT_EQ(pattern->text(), shard_pattern(name, 12));
    for (const std::int64_t index : {0, 7, 11}) {
      EXPECT_EQ(pattern->file(index), shard_path(name, index, 12));
    }
  }
}

TEST(ShardNames, OtherProgramsMayWriteOtherNumbersOfDigits) {
  const auto pattern = ShardPattern::parse("w/part*-of-12");
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->file(3), "w/part03-of-12");
}

TEST(ShardNames, NothingElseIsAPattern) {
  for (const char* path : {"train.h5", "train-*.h5", "*-of-.h5", "train-*-of-x8.h5",
                           "a-*-of-00008/b.h5", "train-00000-of-00008.h5", "", "*"}) {
    EXPECT_FALSE(ShardPattern::parse(path)) << path;
  }
}

}  // namespace
}  // namespace chunkio
