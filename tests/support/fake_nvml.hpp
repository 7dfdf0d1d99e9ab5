/// What a test tells the fake NVML (fake_nvml.cpp), and what that was asked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace chunkio::test {

struct FakeNvml {
  std::atomic<int> init_status{0};  ///< nvmlReturn_t, as the others; 0 is success.
  std::atomic<int> handle_status{0};
  /// Answers of nvmlDeviceGetUtilizationRates(), one a call: percent, or a negative nvmlReturn_t.
  /// The last one of `num_answers` is repeated.
  std::array<std::atomic<int>, 8> answers{};
  std::atomic<std::size_t> num_answers{1};
  std::atomic<bool> hold{false};  ///< While it is, no call is answered.

  std::atomic<int> inits{0};
  std::atomic<int> shutdowns{0};
  std::atomic<std::size_t> asked{0};     ///< Calls for rates that began ...
  std::atomic<std::size_t> answered{0};  ///< ... and ended.
  std::array<char, 64> bus_id{};         ///< Of the last device that was asked for.
  std::atomic<bool> misused{false};      ///< Called before it was set up, or with another's handle.
};

/// Exported by the library as fake_nvml().
using FakeNvmlFunction = FakeNvml*();

}  // namespace chunkio::test
