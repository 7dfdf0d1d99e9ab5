// GpuUtilization with a script in place of nvidia-smi.

#include "gpu_utilization.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "harness/scratch_folder.hpp"

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr const char* kBusId = "00000000:3B:00.0";

class GpuUtilizationTest : public ::testing::Test {
 protected:
  ~GpuUtilizationTest() override { ::setenv("PATH", path_.c_str(), 1); }

  /// \param script  does as nvidia-smi; $0 lies in folder_.
  void pretend(const std::string& script) {
    const std::string program = folder_.file("nvidia-smi");
    std::ofstream(program) << "#!/bin/sh\necho \"$*\" >\"$0.asked\"\n" << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  /// Whether that becomes the mean within a while.
  static bool becomes(const GpuUtilization& utilization, double mean) {
    for (int i = 0; i < 300 && utilization.mean() != mean; ++i) std::this_thread::sleep_for(10ms);
    return utilization.mean() == mean;
  }

  const std::string path_ = std::getenv("PATH");
  chunkio::test::ScratchFolder folder_;
};

TEST_F(GpuUtilizationTest, TheMeanIsThatOfTheNumbersThatCame) {
  pretend("printf '10\\n 20\\n[N/A]\\n60\\n'\n");
  const GpuUtilization utilization(kBusId);
  EXPECT_TRUE(becomes(utilization, 30));
  std::string asked;
  std::getline(std::ifstream(folder_.file("nvidia-smi.asked")), asked);
  EXPECT_EQ(asked,
            "--id=00000000:3B:00.0 --query-gpu=utilization.gpu --format=csv,noheader,nounits "
            "--loop-ms=100");
}

TEST_F(GpuUtilizationTest, EveryEpochStartsAnew) {
  pretend("echo 40\nwhile [ ! -e \"$0.go\" ]; do sleep 0.01; done\necho 80\n");
  GpuUtilization utilization(kBusId);
  EXPECT_TRUE(becomes(utilization, 40));
  utilization.start();
  EXPECT_EQ(utilization.mean(), std::nullopt);
  std::ofstream(folder_.file("nvidia-smi.go"));
  EXPECT_TRUE(becomes(utilization, 80));
}

TEST_F(GpuUtilizationTest, ItEndsWhileNumbersStillCome) {
  pretend("while echo 50; do sleep 0.05; done\n");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(becomes(GpuUtilization(kBusId), 50));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(GpuUtilizationTest, WithoutAGpuOrADriverThereIsNothingToMeasure) {
  const auto measured = [](const char* bus_id) {
    const GpuUtilization utilization(bus_id);
    std::this_thread::sleep_for(300ms);
    return utilization.mean();
  };
  pretend("echo 50\n");
  EXPECT_EQ(measured(""), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("nvidia-smi.asked"))) << "nothing is asked";
  pretend("echo No devices were found\nexit 6\n");
  EXPECT_EQ(measured(kBusId), std::nullopt);
  std::filesystem::remove(folder_.file("nvidia-smi"));
  EXPECT_EQ(measured(kBusId), std::nullopt);
}

}  // namespace
}  // namespace trainer
