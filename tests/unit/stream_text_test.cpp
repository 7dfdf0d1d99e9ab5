#include "stream_text.hpp"

#include <string>

#include <gtest/gtest.h>

namespace h5pack {
namespace {

/// On one line, so that it does not matter where a paragraph is broken.
std::string end_text(const std::string& advice) {
  EpochReport total;
  total.stats.advice = advice;
  const std::string text = stream_end_text({}, total, false);
  std::string line;
  for (const char c : text) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || line.empty() || line.back() != ' ') line += next;
  }
  return line;
}

TEST(StreamText, AdviceNamesTheOptionOfThisProgram) {
  EXPECT_EQ(end_text("Copying limits: raise num_threads to the 8 CPUs (now 2)."),
            "advice Copying limits: raise num_threads (--threads) to the 8 CPUs (now 2). ");
  EXPECT_EQ(end_text("raise prefetch_depth, or keep them (resident = host; it fits)"),
            "advice raise prefetch_depth (--prefetch), or keep them (resident (--resident) = host; "
            "it fits) ");
}

TEST(StreamText, AdviceNamesNoOptionForPartsOfWords) {
  EXPECT_EQ(end_text("The order of presidents verifyably my_source: in order."),
            "advice The order of presidents verifyably my_source: in order. ");
}

}  // namespace
}  // namespace h5pack
