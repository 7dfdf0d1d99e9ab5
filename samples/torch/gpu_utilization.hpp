// GPU utilisation as nvidia-smi shows it: the share of time in which at least one kernel ran.
//
// It looks back up to a second, so epochs that are shorter say little; of a part of a GPU (MIG) it
// knows nothing. The primary figure is the stall.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trainer {

/// Has nvidia-smi look ten times a second, and reads on a thread of its own what it prints.
class GpuUtilization {
 public:
  /// \param pci_bus_id  of the GPU, as cudaDeviceGetPCIBusId() names it: nvidia-smi numbers all
  /// GPUs
  ///                    of a machine, CUDA only those of CUDA_VISIBLE_DEVICES. Where it is empty,
  ///                    or there is no nvidia-smi that knows the GPU, there is nothing to measure.
  explicit GpuUtilization(const std::string& pci_bus_id);

  /// Forgets what was measured, and goes on.
  void start();
  /// Mean since start(), in percent; nothing if it was not measured.
  [[nodiscard]] std::optional<double> mean() const;

 private:
  mutable std::mutex mutex_;
  double sum_ = 0;      // guarded by mutex_
  double samples_ = 0;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trainer
