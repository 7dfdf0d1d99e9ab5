#include "gpu_utilization.hpp"

#include <stdio.h>

#include <memory>
#include <stop_token>

namespace trainer {
namespace {

/// Waits for the program behind the pipe, which ends when it next writes.
struct ClosePipe {
  void operator()(std::FILE* pipe) const { ::pclose(pipe); }
};

}  // namespace

GpuUtilization::GpuUtilization(const std::string& pci_bus_id) {
  if (pci_bus_id.empty()) return;
  const std::string command =
      "exec nvidia-smi --id=" + pci_bus_id +
      " --query-gpu=utilization.gpu --format=csv,noheader,nounits --loop-ms=100 2>/dev/null";
  thread_ = std::jthread([this, command](const std::stop_token& stop) {
    const std::unique_ptr<std::FILE, ClosePipe> lines(::popen(command.c_str(), "r"));
    char line[64];
    while (!stop.stop_requested() && lines && std::fgets(line, sizeof line, lines.get())) {
      double percent = 0;
      if (std::sscanf(line, "%lf", &percent) != 1) continue;  // As "[N/A]" of a part of a GPU.
      const std::lock_guard lock(mutex_);
      sum_ += percent;
      samples_ += 1;
    }
  });
}

void GpuUtilization::start() {
  const std::lock_guard lock(mutex_);
  sum_ = samples_ = 0;
}

std::optional<double> GpuUtilization::mean() const {
  const std::lock_guard lock(mutex_);
  if (samples_ == 0) return {};
  return sum_ / samples_;
}

}  // namespace trainer
