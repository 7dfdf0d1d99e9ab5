#include "fault/fake_cuda_runtime.hpp"

#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace fake_cuda {

Runtime g_runtime;
thread_local int g_device = 0;
thread_local std::vector<int> g_pushed = {};
thread_local cudaError_t g_last = cudaSuccess;

namespace {

std::mutex g_mutex;  // Guards g_runtime.

int current_device() { return g_pushed.empty() ? g_device : g_pushed.back(); }

/// A call on a device; or, with `count` false, one that needs none.
cudaError_t enter(const char* function, bool count = true) {
  const std::lock_guard lock(g_mutex);
  if (count) {
    g_runtime.calls.push_back({function, current_device()});
    g_runtime.contexts.insert(current_device());
  }
  cudaError_t status = cudaSuccess;
  const auto found = g_runtime.failing.find(function);
  if (found != g_runtime.failing.end()) status = found->second;
  if (g_runtime.lost != cudaSuccess) status = g_runtime.lost;
  if (status != cudaSuccess) g_last = status;
  return status;
}

/// Something is taken, unless `status` says no.
cudaError_t take(cudaError_t status, const char* what, void** handle, std::size_t bytes = 1) {
  *handle = nullptr;
  if (status != cudaSuccess) return status;
  const std::lock_guard lock(g_mutex);
  ++g_runtime.given[what];
  *handle = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return status;
}

/// And given back. A device that is lost has none of it any more.
cudaError_t give_back(const char* function, const char* what, void* handle) {
  const cudaError_t status = enter(function);
  const std::lock_guard lock(g_mutex);
  --g_runtime.given[what];
  std::free(handle);
  return status;
}

template <class Handle>
void** out(Handle* handle) {
  return reinterpret_cast<void**>(handle);
}

// What is made of a device when it is a context: its number, and one, as none is nullptr.
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<std::intptr_t>(device) + 1);
}

CUresult driver_init(unsigned) { return static_cast<CUresult>(enter("cuInit", false)); }
CUresult driver_device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return static_cast<CUresult>(enter("cuDeviceGet", false));
}
CUresult driver_primary_context_retain(CUcontext* context, CUdevice device) {
  const cudaError_t status = enter("cuDevicePrimaryCtxRetain", false);
  const std::lock_guard lock(g_mutex);
  if (status == cudaSuccess) g_runtime.contexts.insert(device);
  *context = context_of(device);
  return static_cast<CUresult>(status);
}
CUresult driver_context_push(CUcontext context) {
  const cudaError_t status = enter("cuCtxPushCurrent", false);
  const int device = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
  if (status == cudaSuccess) g_pushed.push_back(device);
  return static_cast<CUresult>(status);
}
CUresult driver_context_pop(CUcontext* context) {
  if (g_pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = context_of(g_pushed.back());
  g_pushed.pop_back();
  return CUDA_SUCCESS;
}

cudaError_t driver_function(const char* name, void** function,
                            cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  *result = cudaDriverEntryPointSymbolNotFound;
  static const std::map<std::string, void*> functions = {
      {"cuInit", reinterpret_cast<void*>(driver_init)},
      {"cuDeviceGet", reinterpret_cast<void*>(driver_device_get)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(driver_primary_context_retain)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(driver_context_push)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(driver_context_pop)}};
  const std::lock_guard lock(g_mutex);
  const auto found = functions.find(name);
  if (found != functions.end() && g_runtime.missing != name) {
    *function = found->second;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {
cudaError_t __wrap_cudaGetDeviceCount(int* count) {
  const cudaError_t status = enter("cudaGetDeviceCount", false);
  const std::lock_guard lock(g_mutex);
  *count = status == cudaSuccess ? g_runtime.devices : 0;
  return status;
}
cudaError_t __wrap_cudaDriverGetVersion(int* version) {
  const std::lock_guard lock(g_mutex);
  *version = g_runtime.driver;
  return cudaSuccess;
}
cudaError_t __wrap_cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                           cudaDriverEntryPointQueryResult* result) {
  return driver_function(name, function, result);
}
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                    unsigned long long,
                                                    cudaDriverEntryPointQueryResult* result) {
  return driver_function(name, function, result);
}
cudaError_t __wrap_cudaSetDevice(int device) {
  const cudaError_t status = enter("cudaSetDevice", false);
  if (status != cudaSuccess) return status;
  g_device = device;
  const std::lock_guard lock(g_mutex);
  g_runtime.contexts.insert(device);
  return status;
}
cudaError_t __wrap_cudaGetLastError() { return std::exchange(g_last, cudaSuccess); }

cudaError_t __wrap_cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = std::size_t{1} << 30;
  *total_bytes = std::size_t{1} << 31;
  return enter("cudaMemGetInfo");
}
cudaError_t __wrap_cudaMalloc(void** memory, std::size_t bytes) {
  return take(enter("cudaMalloc"), "device memory", memory, bytes);
}
cudaError_t __wrap_cudaFree(void* memory) { return give_back("cudaFree", "device memory", memory); }
cudaError_t __wrap_cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return take(enter("cudaHostAlloc"), "page-locked memory", memory, bytes);
}
cudaError_t __wrap_cudaFreeHost(void* memory) {
  return give_back("cudaFreeHost", "page-locked memory", memory);
}
cudaError_t __wrap_cudaHostRegister(void*, std::size_t, unsigned) {
  const cudaError_t status = enter("cudaHostRegister");
  const std::lock_guard lock(g_mutex);
  if (status == cudaSuccess) ++g_runtime.given["page lock"];
  return status;
}
cudaError_t __wrap_cudaHostUnregister(void*) {
  return give_back("cudaHostUnregister", "page lock", nullptr);
}

cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return take(enter("cudaStreamCreateWithFlags"), "stream", out(stream));
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
  return give_back("cudaStreamDestroy", "stream", stream);
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t) { return enter("cudaStreamSynchronize"); }
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return enter("cudaStreamWaitEvent");
}
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const cudaError_t status = take(enter("cudaEventCreateWithFlags"), "event", out(event));
  const std::lock_guard lock(g_mutex);
  g_runtime.events[*event] = flags;
  return status;
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) {
  return give_back("cudaEventDestroy", "event", event);
}
cudaError_t __wrap_cudaEventRecord(cudaEvent_t, cudaStream_t) { return enter("cudaEventRecord"); }
cudaError_t __wrap_cudaEventQuery(cudaEvent_t) { return enter("cudaEventQuery"); }
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t) { return enter("cudaEventSynchronize"); }
cudaError_t __wrap_cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0.25F;
  return enter("cudaEventElapsedTime");
}
cudaError_t __wrap_cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                                   cudaMemcpyKind, cudaStream_t) {
  const cudaError_t status = enter("cudaMemcpyAsync");
  if (status == cudaSuccess) std::memcpy(target, source, bytes);
  return status;
}

cudaError_t __wrap_cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  const cudaError_t status = enter("cudaMemsetAsync");
  if (status == cudaSuccess) std::memset(memory, value, bytes);
  return status;
}

// What <<<>>> becomes: of nvcc 13, and of older ones.
unsigned __wrap___cudaPushCallConfiguration(dim3, dim3, std::size_t, CUstream_st*) { return 0; }
cudaError_t __wrap___cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                              void* stream) {
  *grid = *block = dim3(1);
  *shared = 0;
  *static_cast<CUstream_st**>(stream) = nullptr;
  return cudaSuccess;
}
cudaError_t __wrap___cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return enter("launch");
}
cudaError_t __wrap_cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return enter("launch");
}
}
