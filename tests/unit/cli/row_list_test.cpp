#include "cli/row_list.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace cli {
namespace {

std::vector<chunkio::RowRange> ranges(const char* text) {
  const chunkio::RowSelection rows = parse_row_list(text);
  return {rows.ranges().begin(), rows.ranges().end()};
}

TEST(RowList, RangesEndBeforeTheirSecondNumber) {
  EXPECT_EQ(ranges("0:1000,2000,5000:6000"),
            (std::vector<chunkio::RowRange>{{0, 1000}, {2000, 2001}, {5000, 6000}}));
}

TEST(RowList, OrderDoesNotMatterAndNeighboursAreJoined) {
  EXPECT_EQ(ranges("7,0:3,3:5"), (std::vector<chunkio::RowRange>{{0, 5}, {7, 8}}));
}

TEST(RowList, NamesThePartThatIsWrong) {
  for (const char* wrong :
       {"", "x", "-1", "1:", ":5", "5:5", "5:4", "1:2:3", " 1", "1 ", "1-5", "0x3", "1.5",
        "9223372036854775807", "99999999999999999999", "0:9223372036854775807"}) {
    for (const std::string& text :
         {std::string(wrong), "3," + std::string(wrong), std::string(wrong) + ",3"}) {
      chunkio::test::expect_error(chunkio::ErrorCode::invalid_argument,
                                  {"'" + std::string(wrong) + "'"},
                                  [&] { static_cast<void>(parse_row_list(text)); });
    }
  }
}

TEST(RowList, RefusesRowsNamedTwice) {
  EXPECT_THROW(static_cast<void>(parse_row_list("1,0:3")), chunkio::Error);
}

}  // namespace
}  // namespace cli
