// What the trainers say about an epoch, and when they advise to echo.

#include "epoch_report.hpp"

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/scratch_folder.hpp"

namespace trainer {
namespace {

using Json = nlohmann::json;

EpochReport epoch(std::int64_t number, double seconds, double stall_seconds,
                  std::optional<double> gpu_percent = {}) {
  return {.epoch = number,
          .images = 1000,
          .seconds = seconds,
          .stall_seconds = stall_seconds,
          .gpu_percent = gpu_percent,
          .training = {.loss = 0.5, .accuracy = 0.75}};
}

/// What echo_needed() says after an epoch that stalls `share` of its time.
std::optional<std::int64_t> needed(double share, std::int64_t echo, LoaderKind loader) {
  Options options;
  options.echo = echo;
  Reporter reporter("trainer", options, loader);
  reporter.epoch(epoch(0, 4, 4 * share));
  return reporter.echo_needed();
}

class EpochReportTest : public ::testing::Test {
 protected:
  EpochReportTest() { options_.json = folder_.file("lines.json"); }

  [[nodiscard]] std::vector<Json> lines() const {
    std::ifstream file(options_.json);
    std::vector<Json> all;
    for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
    return all;
  }

  chunkio::test::ScratchFolder folder_;
  Options options_;
};

TEST_F(EpochReportTest, EchoKeepsANetworkBusyThatWaits) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(needed(0, 1, LoaderKind::device), 1);
  EXPECT_EQ(needed(0, 3, LoaderKind::device), 3);
  // A hundredth more work than there is time for is let pass.
  EXPECT_EQ(needed(0.0098, 1, LoaderKind::device), 1);
  EXPECT_EQ(needed(0.02, 1, LoaderKind::device), 2);
  EXPECT_EQ(needed(0.5, 1, LoaderKind::device), 2);
  EXPECT_EQ(needed(0.51, 1, LoaderKind::device), 3);
  EXPECT_EQ(needed(2.0 / 3, 1, LoaderKind::device), 3);
  // Of images that are echoed already.
  EXPECT_EQ(needed(1.0 / 3, 2, LoaderKind::device), 3);
  // A program that only waits gets a number, too.
  EXPECT_EQ(needed(1, 1, LoaderKind::device), 1000);
  // Elsewhere echoed images are normalised again.
  EXPECT_EQ(needed(0.5, 1, LoaderKind::host), std::nullopt);
  EXPECT_EQ(needed(0.5, 1, LoaderKind::naive), std::nullopt);
  ::testing::internal::GetCapturedStdout();
}

TEST_F(EpochReportTest, TheFirstEpochCountsOnlyAlone) {
  ::testing::internal::CaptureStdout();
  Reporter reporter("chunkio-train-cifar", options_, LoaderKind::device);
  reporter.epoch(epoch(0, 10, 9, 10));
  EXPECT_EQ(reporter.echo_needed(), 10);
  reporter.all();
  reporter.epoch(epoch(1, 1, 0.5, 90));
  reporter.epoch(epoch(2, 2, 0.25));  // Too short to be measured.
  reporter.epoch(epoch(3, 3, 0, 50));
  reporter.all();
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("epoch 0: 100 images/s, stalled 9000.0 ms (90.00 %), GPU 10.0 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("epoch 2: 500 images/s, stalled 250.0 ms (12.50 %), GPU n/a, loss 0.5000, "
                      "accuracy 75.00 %\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("epochs 1 to 3: 500 images/s, stalled 750.0 ms (12.50 %), GPU 60.0 %"),
            std::string::npos)
      << text;

  const std::vector<Json> written = lines();
  ASSERT_EQ(written.size(), 6U);
  EXPECT_EQ(written[1].at("kind"), "all");
  EXPECT_EQ(written[1].at("epoch"), 0);
  EXPECT_EQ(written[1].at("echo_needed"), 10);
  EXPECT_EQ(written[2].at("kind"), "epoch");
  EXPECT_TRUE(written[2].at("echo_needed").is_null());
  EXPECT_TRUE(written[3].at("gpu_percent").is_null());
  EXPECT_EQ(written[5].at("images"), 3000);
  EXPECT_EQ(written[5].at("stall_percent"), 12.5);
  // By time, over the epochs that were measured.
  EXPECT_EQ(written[5].at("gpu_percent"), 60);
  EXPECT_EQ(written[5].at("echo_needed"), 2);
}

TEST_F(EpochReportTest, HeldOutImagesAreThoseOfTheLastTimeTheyWereLookedAt) {
  ::testing::internal::CaptureStdout();
  Reporter reporter("trainer", options_, LoaderKind::host);
  EpochReport report = epoch(1, 1, 0);
  report.held_out = Score{.loss = 0.25, .accuracy = 0.875};
  reporter.epoch(report);
  reporter.epoch(epoch(2, 1, 0));
  reporter.all();
  EXPECT_NE(
      ::testing::internal::GetCapturedStdout().find("; held out: loss 0.2500, accuracy 87.50 %\n"),
      std::string::npos);
  const std::vector<Json> written = lines();
  ASSERT_EQ(written.size(), 3U);
  EXPECT_EQ(written[0].at("held_out_accuracy"), 0.875);
  EXPECT_TRUE(written[1].at("held_out_accuracy").is_null());
  EXPECT_EQ(written[2].at("held_out_accuracy"), 0.875);
}

TEST_F(EpochReportTest, WhatIsNotANumberIsNull) {
  ::testing::internal::CaptureStdout();
  Reporter reporter("trainer", options_, LoaderKind::host);
  EpochReport report = epoch(0, 0, 0);
  report.training.loss = std::numeric_limits<double>::quiet_NaN();
  reporter.epoch(report);
  ::testing::internal::GetCapturedStdout();
  const std::vector<Json> written = lines();
  ASSERT_EQ(written.size(), 1U);
  EXPECT_TRUE(written[0].at("loss").is_null());
  EXPECT_TRUE(written[0].at("images_per_second").is_null());
  EXPECT_EQ(written[0].at("stall_percent"), 0);
}

TEST_F(EpochReportTest, AFileThatCannotBeWrittenIsAnError) {
  options_.json = folder_.file("none/lines.json");
  try {
    const Reporter reporter("trainer", options_, LoaderKind::host);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write " + options_.json);
  }
  options_.json = "/dev/full";
  Reporter reporter("trainer", options_, LoaderKind::host);
  ::testing::internal::CaptureStdout();
  EXPECT_THROW(reporter.epoch(epoch(0, 1, 0)), std::runtime_error);
  ::testing::internal::GetCapturedStdout();
}

}  // namespace
}  // namespace trainer
