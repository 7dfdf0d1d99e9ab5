#include <string>

#include <gtest/gtest.h>

#include "h5pack/report/report.hpp"
#include "support/waiting_stats.hpp"

namespace h5pack {
namespace {

/// On one line, so that it does not matter where a paragraph is broken.
std::string end_text(const chunkio::LoaderStats& stats) {
  EpochReport total;
  total.stats = stats;
  const std::string text = stream_end_text({}, total, "", false);
  std::string line;
  for (const char c : text) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || line.empty() || line.back() != ' ') line += next;
  }
  return line;
}

TEST(StreamText, AdviceNamesTheOptionOfThisProgram) {
  chunkio::LoaderStats stats = chunkio::test::waiting_stats();
  stats.decode_seconds = 20;
  stats.facts.verify = chunkio::Verify::always;
  stats = stats.since({});  // which finds the advice
  EXPECT_NE(end_text(stats).find("Compare digests in the first epoch only (verify = first_epoch "
                                 "(--verify first-epoch))."),
            std::string::npos)
      << end_text(stats);
}

TEST(StreamText, AnEpochThatWasTooShortToJudgeHasNoBottleneck) {
  EpochReport report;
  report.stats = chunkio::test::waiting_stats();
  report.stats.copy_seconds = 20;
  report.stats = report.stats.since({});  // which finds the bottleneck
  EXPECT_NE(epoch_text({}, report, false).find("; bottleneck: copy"), std::string::npos);
  report.stats.seconds = 0.4;
  report.stats.stall_seconds = 0.2;
  report.stats.copy_seconds = 0.8;
  EXPECT_EQ(epoch_text({}, report, false).find("bottleneck"), std::string::npos);
}

TEST(StreamText, NoAdviceIsNoLine) { EXPECT_EQ(end_text({}), ""); }

}  // namespace
}  // namespace h5pack
