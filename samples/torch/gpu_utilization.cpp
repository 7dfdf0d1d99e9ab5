#include "gpu_utilization.hpp"

#include <dlfcn.h>

#include <chrono>

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 100ms;

}  // namespace

/// The functions of NVML that are needed, with the types of nvml.h, which need not be installed:
/// names end in the version that its macros choose, and a library keeps the versions it ever had.
struct GpuUtilization::Nvml {
  struct Rates {  // nvmlUtilization_t, percent
    unsigned gpu;
    unsigned memory;
  };
  using Device = void*;               // nvmlDevice_t
  static constexpr int kSuccess = 0;  // NVML_SUCCESS

  void* library = nullptr;
  bool initialised = false;
  Device device = nullptr;
  int (*shutdown)() = nullptr;
  int (*get_rates)(Device, Rates*) = nullptr;

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }

  bool open(const std::string& pci_bus_id) {
    if (pci_bus_id.empty()) return false;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    auto* const init = find<int()>("nvmlInit_v2");
    auto* const get_device = find<int(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
    shutdown = find<int()>("nvmlShutdown");
    get_rates = find<int(Device, Rates*)>("nvmlDeviceGetUtilizationRates");
    if (init == nullptr || get_device == nullptr || shutdown == nullptr || get_rates == nullptr) {
      return false;
    }
    initialised = init() == kSuccess;
    Rates rates{};
    return initialised && get_device(pci_bus_id.c_str(), &device) == kSuccess &&
           get_rates(device, &rates) == kSuccess;
  }

  ~Nvml() {
    if (initialised) shutdown();
    if (library != nullptr) dlclose(library);
  }
};

GpuUtilization::GpuUtilization(const std::string& pci_bus_id) : nvml_(std::make_unique<Nvml>()) {
  if (!nvml_->open(pci_bus_id)) {
    nvml_.reset();
    return;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { sample(stop); });
}

GpuUtilization::~GpuUtilization() = default;

void GpuUtilization::start() {
  const std::lock_guard lock(mutex_);
  sum_ = samples_ = 0;
  ++starts_;
}

std::optional<double> GpuUtilization::mean() const {
  const std::lock_guard lock(mutex_);
  if (samples_ == 0) return {};
  return sum_ / samples_;
}

void GpuUtilization::sample(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, stop, kInterval, [] { return false; });
    if (stop.stop_requested()) return;
    const int asked_in = starts_;
    lock.unlock();
    Nvml::Rates rates{};
    const bool known = nvml_->get_rates(nvml_->device, &rates) == Nvml::kSuccess;
    lock.lock();
    if (known && asked_in == starts_) {
      sum_ += rates.gpu;
      samples_ += 1;
    }
  }
}

}  // namespace trainer
