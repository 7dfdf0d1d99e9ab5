#include "cli/help.hpp"

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(MostSimilar, FindsWhatWasMisspelled) {
  const std::vector<std::string> names = {"stream", "verify", "preview", "repack", "link"};
  EXPECT_EQ(most_similar("strem", names), "stream");
  EXPECT_EQ(most_similar("steram", names), "stream");
  EXPECT_EQ(most_similar("sstream", names), "stream");
  EXPECT_EQ(most_similar("pack", names), "repack");
  EXPECT_EQ(most_similar("verifi", names), "verify");
  EXPECT_EQ(most_similar("prev", names), "preview") << "the beginning of one alone";
}

TEST(MostSimilar, GuessesNothingThatIsNotLikeIt) {
  const std::vector<std::string> names = {"stream", "verify", "ab", "abc"};
  EXPECT_EQ(most_similar("bake", names), "");
  EXPECT_EQ(most_similar("", names), "");
  EXPECT_EQ(most_similar("x", {}), "");
  EXPECT_EQ(most_similar("xy", names), "") << "nothing of it would be left";
}

}  // namespace
}  // namespace cli
