// GPU utilisation as nvidia-smi shows it: the share of time in which at least one kernel ran.
//
// NVML, which knows it, comes with the driver and is loaded at run time. It looks back up to a
// second, so epochs that are shorter say little; of a part of a GPU (MIG) it knows nothing. The
// primary figure is the stall.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace trainer {

/// Asks NVML ten times a second, on a thread of its own.
class GpuUtilization {
 public:
  /// \param pci_bus_id  of the GPU, as cudaDeviceGetPCIBusId() names it: NVML numbers all GPUs of a
  ///                    machine, CUDA only those of CUDA_VISIBLE_DEVICES. Where it is empty, or
  ///                    there is no NVML that knows the GPU, there is nothing to measure.
  explicit GpuUtilization(const std::string& pci_bus_id);
  GpuUtilization(const GpuUtilization&) = delete;
  GpuUtilization& operator=(const GpuUtilization&) = delete;
  ~GpuUtilization();

  /// Forgets what was measured, and goes on.
  void start();
  /// Mean since start(), in percent; nothing if it was not measured.
  [[nodiscard]] std::optional<double> mean() const;

 private:
  struct Nvml;

  void sample(const std::stop_token& stop);

  std::unique_ptr<Nvml> nvml_;  // null: nothing to measure
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  double sum_ = 0;      // guarded by mutex_
  double samples_ = 0;  // guarded by mutex_
  int starts_ = 0;      // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trainer
