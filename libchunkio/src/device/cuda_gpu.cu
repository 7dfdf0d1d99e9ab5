#include <cuda_runtime.h>

#include <string>

#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "device/normalize_kernel.cuh"

namespace chunkio::device {
namespace {

Error failure(cudaError_t status, const std::string& action) {
  const bool refused = status == cudaErrorMemoryAllocation;
  return Error(refused ? ErrorCode::out_of_resources : ErrorCode::cuda_failed,
               "CUDA cannot " + action + ": " + cudaGetErrorString(status) + " (" +
                   cudaGetErrorName(status) + ")");
}

void check(cudaError_t status, const char* action) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // Or the next launch would be blamed for it.
  throw failure(status, action);
}

void check_bytes(cudaError_t status, const char* action, std::size_t bytes) {
  if (status == cudaSuccess) return;
  check(status, (action + (" " + std::to_string(bytes)) + " bytes").c_str());
}

/// Makes a device that of the calling thread while it lives: the caller may be using another one.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    check(cudaSetDevice(device), "select the device");
    changed_ = before_ != device;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(int device) : device_(device) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw Error(ErrorCode::cuda_failed, std::string("no GPU can be used: ") +
                                              cudaGetErrorString(status) +
                                              "; install a driver that goes with CUDA " +
                                              std::to_string(CUDART_VERSION / 1000) +
                                              ", or use Loader and Normalizer on the CPU");
    }
    if (device < 0 || device >= count) {
      throw Error(ErrorCode::cuda_failed, "there is no CUDA device " + std::to_string(device) +
                                              ": this machine has " + std::to_string(count) +
                                              ", from 0 on");
    }
    const CurrentDevice current(device_);
  }

  std::byte* allocate(std::size_t bytes) override {
    const CurrentDevice current(device_);
    void* memory = nullptr;
    check_bytes(cudaMalloc(&memory, bytes), "allocate, of device memory,", bytes);
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) noexcept override { ignore(cudaFree(memory)); }
  DeviceMemory memory() override {
    const CurrentDevice current(device_);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "tell how much device memory is free");
    return {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(total_bytes)};
  }

  std::byte* allocate_pinned(std::size_t bytes) override {
    const CurrentDevice current(device_);
    void* memory = nullptr;
    check_bytes(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
                "allocate, of page-locked memory,", bytes);
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) noexcept override { ignore(cudaFreeHost(memory)); }
  void pin(std::span<std::byte> memory) override {
    const CurrentDevice current(device_);
    const cudaError_t status =
        cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable);
    if (status == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    const bool refused = status == cudaErrorMemoryAllocation || status == cudaErrorNotSupported ||
                         status == cudaErrorHostMemoryAlreadyRegistered;
    throw Error(refused ? ErrorCode::out_of_resources : ErrorCode::cuda_failed,
                "CUDA cannot page-lock " + std::to_string(memory.size()) +
                    " bytes: " + cudaGetErrorString(status));
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    ignore(cudaHostUnregister(memory.data()));
  }

  StreamHandle create_stream() override {
    const CurrentDevice current(device_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    return stream;
  }
  void destroy_stream(StreamHandle stream) noexcept override { ignore(cudaStreamDestroy(stream)); }
  EventHandle create_event() override { return create_event_with(cudaEventDisableTiming); }
  EventHandle create_timer() override { return create_event_with(cudaEventDefault); }
  void destroy_event(EventHandle event) noexcept override { ignore(cudaEventDestroy(event)); }

  void record(EventHandle event, StreamHandle stream) override {
    const CurrentDevice current(device_);
    check(cudaEventRecord(event, stream), "record an event");
  }
  void wait(StreamHandle stream, EventHandle event) override {
    const CurrentDevice current(device_);
    check(cudaStreamWaitEvent(stream, event), "make a stream wait");
  }
  bool is_done(EventHandle event) override {
    const CurrentDevice current(device_);
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check(status, "look at an event");
    return true;
  }
  void synchronize(EventHandle event) override {
    const CurrentDevice current(device_);
    check(cudaEventSynchronize(event), "wait for an event");
  }
  void synchronize(StreamHandle stream) override {
    const CurrentDevice current(device_);
    check(cudaStreamSynchronize(stream), "wait for a stream");
  }
  double seconds_between(EventHandle begin, EventHandle end) override {
    const CurrentDevice current(device_);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "take the time between two events");
    return static_cast<double>(milliseconds) / 1000;
  }

  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      StreamHandle stream) override {
    const CurrentDevice current(device_);
    check_bytes(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream),
                "copy to the device", bytes);
  }
  void require_supported(const NormalizePlan& plan) override {
    if (fits_kernel(plan)) return;
    throw Error(ErrorCode::unsupported, "rows of " + std::to_string(plan.crop.width) +
                                            " pixels are too long for the kernel; crop the "
                                            "pictures to fewer columns");
  }
  void normalize(const NormalizePlan& plan, const LabelPlan& labels, const BatchWork& work,
                 StreamHandle stream) override {
    const CurrentDevice current(device_);
    check(launch_normalize(plan, labels, work, stream), "launch the normalising kernel");
  }

 private:
  [[nodiscard]] EventHandle create_event_with(unsigned flags) {
    const CurrentDevice current(device_);
    cudaEvent_t event = nullptr;
    // Whoever waits sleeps: the CPUs have pictures to read.
    check(cudaEventCreateWithFlags(&event, flags | cudaEventBlockingSync), "create an event");
    return event;
  }
  // At the end of a program the driver may be gone before its memory is given back.
  static void ignore(cudaError_t status) noexcept {
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  int device_;
};

}  // namespace

std::shared_ptr<Gpu> open_gpu(int device) { return std::make_shared<CudaGpu>(device); }

}  // namespace chunkio::device
