/// A libnvidia-ml.so.1 that does as a test tells it.
///
/// Names and types are those of nvml.h (NVML API Reference Guide, "Device Queries"): its macros
/// turn nvmlInit into nvmlInit_v2 and nvmlDeviceGetHandleByPciBusId into _v2, and the library of
/// the driver has the old names as well, with other semantics. Built with -DNAME=OTHER it lacks
/// NAME.
#include "support/fake_nvml.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace {

chunkio::test::FakeNvml g_fake;
int g_device = 0;

constexpr int kErrorUninitialized = 1;
constexpr int kErrorInvalidArgument = 2;

}  // namespace

extern "C" {

struct nvmlUtilization_t {
  unsigned gpu;
  unsigned memory;
};
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlReturn_t = int;

chunkio::test::FakeNvml* fake_nvml() { return &g_fake; }

nvmlReturn_t nvmlInit_v2() {
  const int status = g_fake.init_status;
  if (status == 0) ++g_fake.inits;
  return status;
}
nvmlReturn_t nvmlShutdown() {
  ++g_fake.shutdowns;
  return 0;
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  if (g_fake.inits == g_fake.shutdowns) g_fake.misused = true;
  std::strncpy(g_fake.bus_id.data(), bus_id, g_fake.bus_id.size() - 1);
  *device = reinterpret_cast<nvmlDevice_t>(&g_device);
  return g_fake.handle_status;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  const std::size_t call = g_fake.asked++;
  while (g_fake.hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (g_fake.inits == g_fake.shutdowns) g_fake.misused = true;
  if (device != reinterpret_cast<nvmlDevice_t>(&g_device)) g_fake.misused = true;
  const int answer = g_fake.answers[std::min(call, g_fake.num_answers - 1)];
  if (answer >= 0) *rates = {static_cast<unsigned>(answer), 3};
  ++g_fake.answered;
  return answer >= 0 ? 0 : -answer;
}

// The first versions of these, which nobody should find.
nvmlReturn_t nvmlInit() {
  g_fake.misused = true;
  return kErrorUninitialized;
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char*, nvmlDevice_t*) {
  g_fake.misused = true;
  return kErrorInvalidArgument;
}
}
