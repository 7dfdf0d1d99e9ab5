// GpuUtilization with a fake NVML: a library that the test loads under the name of the real
// one, which the loader of the system then takes for it.

#include "gpu_utilization.hpp"

#include <dlfcn.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/fake_nvml.hpp"

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr const char* kRealName = "libnvidia-ml.so.1";
constexpr const char* kBusId = "00000000:3B:00.0";
constexpr int kNotSupported = 3;
constexpr int kGpuIsLost = 15;

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

class GpuUtilizationTest : public ::testing::Test {
 protected:
  /// \param lacks  a function that the library does not have.
  void load(const std::string& lacks = {}) {
    const std::string path = std::string(CHUNKIO_FAKE_NVML_DIR) + "/" +
                             (lacks.empty() ? "complete" : "without_" + lacks) + "/" + kRealName;
    library_.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    ASSERT_NE(library_, nullptr) << ::dlerror();
    ASSERT_NE(::dlsym(library_.get(), "fake_nvml"), nullptr);
    nvml_ =
        reinterpret_cast<chunkio::test::FakeNvmlFunction*>(::dlsym(library_.get(), "fake_nvml"))();
    if (!lacks.empty()) {
      ASSERT_EQ(::dlsym(library_.get(), lacks.c_str()), nullptr);
    }
  }
  void TearDown() override {
    if (library_ != nullptr) {
      EXPECT_FALSE(nvml_->misused);
      EXPECT_EQ(nvml_->inits, nvml_->shutdowns);
    }
    library_.reset();
    // The next test starts with a new one.
    EXPECT_EQ(::dlopen(kRealName, RTLD_NOW | RTLD_NOLOAD), nullptr);
  }
  template <class... Answers>
  void answer(Answers... answers) {
    std::size_t i = 0;
    ((nvml_->answers[i++] = answers), ...);
    nvml_->num_answers = sizeof...(answers);
  }
  void wait_for_calls(std::size_t more) const {
    const std::size_t until = nvml_->answered + more;
    while (nvml_->answered < until) std::this_thread::sleep_for(1ms);
    // The answer to the last of them is counted when the next is asked for.
    const std::size_t asked = nvml_->asked;
    while (nvml_->asked == asked) std::this_thread::sleep_for(1ms);
  }

  std::unique_ptr<void, Close> library_;
  chunkio::test::FakeNvml* nvml_ = nullptr;
};

TEST_F(GpuUtilizationTest, TheMeanIsThatOfTheAnswersThatCame) {
  load();
  // The first answer shows that there is something to measure. One that fails counts nowhere.
  answer(99, 10, 20, -kGpuIsLost, 60, -kGpuIsLost);
  GpuUtilization utilization(kBusId);
  EXPECT_STREQ(nvml_->bus_id.data(), kBusId);
  wait_for_calls(5);
  EXPECT_EQ(utilization.mean(), 30.0);
}

TEST_F(GpuUtilizationTest, EveryEpochStartsAnew) {
  load();
  answer(40);
  GpuUtilization utilization(kBusId);
  utilization.start();
  wait_for_calls(2);
  EXPECT_EQ(utilization.mean(), 40.0);

  answer(80);
  utilization.start();
  wait_for_calls(2);
  EXPECT_EQ(utilization.mean(), 80.0);
}

TEST_F(GpuUtilizationTest, WhatWasAskedBeforeTheStartIsNotCounted) {
  load();
  answer(50, 10, -kNotSupported);
  GpuUtilization utilization(kBusId);
  nvml_->hold = true;
  while (nvml_->asked < 2) std::this_thread::sleep_for(1ms);
  utilization.start();
  nvml_->hold = false;
  wait_for_calls(2);
  EXPECT_EQ(utilization.mean(), std::nullopt);
}

TEST_F(GpuUtilizationTest, ItEndsWithoutWaitingForTheNextQuestion) {
  load();
  answer(50);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) GpuUtilization{kBusId}.start();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);  // Not 5.
  EXPECT_EQ(nvml_->inits, 50);
}

TEST_F(GpuUtilizationTest, CallsThatFailLeaveNothingToMeasure) {
  load();
  answer(50);
  const auto measured = [] {
    GpuUtilization utilization(kBusId);
    std::this_thread::sleep_for(250ms);
    return utilization.mean();
  };
  nvml_->init_status = 9;  // NVML_ERROR_DRIVER_NOT_LOADED
  const std::size_t asked = nvml_->asked;
  EXPECT_EQ(measured(), std::nullopt);
  nvml_->init_status = 0;
  nvml_->handle_status = 6;  // NVML_ERROR_NOT_FOUND
  EXPECT_EQ(measured(), std::nullopt);
  EXPECT_EQ(nvml_->asked, asked);
  nvml_->handle_status = 0;
  answer(-kNotSupported);  // As of a part of a GPU.
  EXPECT_EQ(measured(), std::nullopt);
}

TEST_F(GpuUtilizationTest, ALibraryThatLacksAFunctionIsNotUsed) {
  for (const char* const name : {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetHandleByPciBusId_v2",
                                 "nvmlDeviceGetUtilizationRates"}) {
    SCOPED_TRACE(name);
    load(name);
    answer(50);
    {
      GpuUtilization utilization(kBusId);
      utilization.start();
      std::this_thread::sleep_for(150ms);
      EXPECT_EQ(utilization.mean(), std::nullopt);
    }
    EXPECT_EQ(nvml_->inits, 0);
    TearDown();
  }
}

TEST_F(GpuUtilizationTest, WithoutAGpuNothingIsLoaded) {
  load();
  GpuUtilization utilization("");
  utilization.start();
  EXPECT_EQ(utilization.mean(), std::nullopt);
  EXPECT_EQ(nvml_->inits, 0);
}

TEST_F(GpuUtilizationTest, WithoutADriverThereIsNothingToMeasure) {
  if (void* const real = ::dlopen(kRealName, RTLD_NOW | RTLD_LOCAL)) {
    ::dlclose(real);
    GTEST_SKIP() << "there is a driver here";
  }
  GpuUtilization utilization(kBusId);
  utilization.start();
  EXPECT_EQ(utilization.mean(), std::nullopt);
}

}  // namespace
}  // namespace trainer
