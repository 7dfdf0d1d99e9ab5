#include "cli/chunk_filter.hpp"

#include <string>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace cli {
namespace {

TEST(ParseFilter, TakesWhatItAlsoPrints) {
  EXPECT_EQ(parse_filter("none").deflate_level, 0);
  for (const std::string text :
       {"none", "deflate:1", "deflate:9", "shuffle+deflate:1", "shuffle+deflate:6"}) {
    EXPECT_EQ(parse_filter(text).to_string(), text);
  }
  EXPECT_FALSE(parse_filter("deflate:6").shuffle);
  EXPECT_TRUE(parse_filter("shuffle+deflate:6").shuffle);
}

TEST(ParseFilter, RefusesEverythingElse) {
  for (const std::string text :
       {"", "deflate", "deflate:", "deflate:0", "deflate:10", "deflate:12", "deflate:-1",
        "deflate:x", "gzip:6", "shuffle", "shuffle+", "shuffle+none", "shuffle+shuffle+deflate:1",
        "deflate:1+shuffle", " deflate:1", "deflate:1 ", "None", "DEFLATE:1"}) {
    chunkio::test::expect_error(chunkio::ErrorCode::invalid_argument,
                                {"--filter", "'" + text + "'", "shuffle+deflate:N"},
                                [&] { (void)parse_filter(text); });
  }
}

}  // namespace
}  // namespace cli
