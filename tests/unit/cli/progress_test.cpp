#include "cli/progress.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/progress_text.hpp"

namespace cli {
namespace {

TEST(FormatCount, SeparatesThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1234), "-1,234");
  EXPECT_EQ(format_count(-123), "-123");
}

TEST(FormatDuration, ShowsHoursOnlyWhenThereAreSome) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(2.1), "0:03");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(1e300), "2400:00:00");
}

TEST(ProgressText, LineSaysWhatIsKnown) {
  const std::vector<std::pair<ProgressState, std::string>> cases = {
      {{"packing train", "images", 50'000, 25'000, 0, 2},
       "packing train: 50% (25,000 of 50,000 images), 12,500 images/s, 0:02 left"},
      {{"packing", "images", 50'000, 22'500, 1'002, 2},
       "packing: 45% (22,500 of 50,000 images), 11,250 images/s, 0:03 left, 1,002 skipped"},
      {{"x", "images", 10, 0, 0, 1}, "x: 0% (0 of 10 images)"},  // No rate before the first.
      {{"x", "u", 1000, 999, 0, 0}, "x: 99% (999 of 1,000 u)"},  // 100 % only when all is done.
      {{"x", "u", 1000, 1000, 0, 0}, "x: 100% (1,000 of 1,000 u)"}};
  for (const auto& [state, line] : cases) EXPECT_EQ(progress_line(state), line);
  EXPECT_NE(progress_bar(cases[1].first, 120).find("0:03 left, 1,002 skipped"), std::string::npos);
}

TEST(ProgressText, BarFitsEveryWidth) {
  const ProgressState state{
      .label = "packing train", .unit = "images", .total = 50000, .done = 22500, .seconds = 2};
  for (int columns = 1; columns < 200; ++columns) {
    EXPECT_LT(progress_bar(state, columns).size(), static_cast<std::size_t>(columns));
  }
  const std::string wide = progress_bar(state, 160);
  EXPECT_NE(wide.find("[=================="), std::string::npos) << wide;
  EXPECT_NE(wide.find(" 45% 22,500/50,000 images"), std::string::npos) << wide;
}

TEST(Progress, NothingIsWrittenIntoALogOfWhatIsQuietOrShort) {
  testing::internal::CaptureStderr();
  for (const bool quiet : {true, false}) {
    Progress progress("packing", "images", 10, quiet);
    progress.add(10);
    progress.finish();
    progress.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, LongWorkWritesPlainLinesIntoALog) {
  testing::internal::CaptureStderr();
  {
    Progress progress("packing", "images", 10, false);
    std::vector<std::jthread> workers;
    for (int i = 0; i < 5; ++i) workers.emplace_back([&] { progress.add(1); });
    workers.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(3200));
    progress.add(5);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("packing: 50% (5 of 10 images)"), std::string::npos) << log;
  EXPECT_NE(log.find("packing: 100% (10 of 10 images)"), std::string::npos) << log;
  EXPECT_EQ(log.find('\r'), std::string::npos);
  EXPECT_EQ(log.find('\x1b'), std::string::npos);
}

TEST(Progress, EndsAtOnceWhenFinishedEarly) {
  const auto start = std::chrono::steady_clock::now();
  { Progress progress("packing", "images", 10, false); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace cli
