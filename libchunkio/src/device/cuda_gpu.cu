#include <cuda_runtime.h>

#include <new>
#include <string>

#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "device/normalize_kernel.cuh"

namespace chunkio::device {
namespace {

// Errors that stay: every later call of the process fails, too, and so does what cleans up.
bool is_lost(cudaError_t status) noexcept {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

// An error that was dealt with, or the next launch would be blamed for it.
void forget(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

// "out of memory (cudaErrorMemoryAllocation)"
std::string text_of(cudaError_t status) {
  return std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")";
}

void check(cudaError_t status, const std::string& action) {
  if (status == cudaSuccess) return;
  forget(status);
  std::string message = "CUDA cannot " + action + ": " + text_of(status);
  if (is_lost(status)) {
    message +=
        "; the device is lost to this process, start it again from the last saved state (dmesg "
        "may say more, as NVRM: Xid)";
  }
  const bool refused = status == cudaErrorMemoryAllocation;
  throw Error(refused ? ErrorCode::out_of_resources : ErrorCode::cuda_failed, message);
}

void check(cudaError_t status, const char* action) {
  // Nothing is put together where nothing failed.
  if (status != cudaSuccess) check(status, std::string(action));
}

void check_bytes(cudaError_t status, std::size_t bytes, const char* of) {
  if (status != cudaSuccess) check(status, "allocate " + std::to_string(bytes) + " bytes of " + of);
}

// Systems refuse to page-lock in many ways, and all of them leave the device as it was.
void check_lock(cudaError_t status, const char* action, std::size_t bytes, const char* of) {
  if (status == cudaSuccess) return;
  const std::string tried = std::string(action) + " " + std::to_string(bytes) + " bytes" + of;
  if (is_lost(status)) check(status, tried);
  forget(status);
  throw Error(ErrorCode::out_of_resources, "CUDA cannot " + tried + ": " + text_of(status));
}

// "12.4"
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Why there is no device at all, and the way out of that.
Error nothing_usable(cudaError_t status) {
  std::string why;
  int driver = 0;
  switch (status) {
    case cudaErrorInsufficientDriver:
      forget(cudaDriverGetVersion(&driver));
      if (driver == 0) {
        why = "no NVIDIA driver is there; install one for CUDA " +
              std::to_string(CUDART_VERSION / 1000) +
              " or later, start the container with its GPUs";
      } else {
        why = "the driver goes up to CUDA " + version_text(driver) + ", and this is built with " +
              version_text(CUDART_VERSION) + "; install a newer driver, build with CUDA " +
              std::to_string(driver / 1000);
      }
      break;
    case cudaSuccess:
    case cudaErrorNoDevice:
      why =
          "the driver sees no device; look at nvidia-smi -L and at CUDA_VISIBLE_DEVICES, which "
          "hides those that it does not name";
      break;
    default:
      why = text_of(status) + "; see what nvidia-smi says";
  }
  return Error(ErrorCode::cuda_failed,
               "no GPU can be used: " + why + ", or use Loader and Normalizer on the CPU");
}

/// Makes a device that of the calling thread while it lives: the caller may be using another one.
class CurrentDevice {
 public:
  /// \throws Error cuda_failed.
  explicit CurrentDevice(int device) : CurrentDevice(device, std::nothrow) {
    check(status_, "select the device");
  }
  /// Tries to.
  CurrentDevice(int device, std::nothrow_t) noexcept {
    const cudaError_t known = cudaGetDevice(&before_);
    forget(known);
    status_ = cudaSetDevice(device);
    forget(status_);
    changed_ = known == cudaSuccess && status_ == cudaSuccess && before_ != device;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) forget(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t status_ = cudaSuccess;
};

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(int device) : device_(device) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    forget(status);
    if (status != cudaSuccess || count == 0) throw nothing_usable(status);
    if (device < 0 || device >= count) {
      throw Error(ErrorCode::cuda_failed,
                  "there is no CUDA device " + std::to_string(device) + ": this process sees " +
                      std::to_string(count) +
                      ", numbered from 0 on (CUDA_VISIBLE_DEVICES may hide others)");
    }
    const CurrentDevice current(device_);
  }

  std::byte* allocate(std::size_t bytes) override {
    const CurrentDevice current(device_);
    void* memory = nullptr;
    check_bytes(cudaMalloc(&memory, bytes), bytes, "device memory");
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) noexcept override {
    give_back([&] { return cudaFree(memory); });
  }
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
    check_lock(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "allocate", bytes,
               " of page-locked memory");
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) noexcept override {
    give_back([&] { return cudaFreeHost(memory); });
  }
  void pin(std::span<std::byte> memory) override {
    const CurrentDevice current(device_);
    check_lock(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable),
               "page-lock", memory.size(), "");
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    give_back([&] { return cudaHostUnregister(memory.data()); });
  }

  StreamHandle create_stream() override {
    const CurrentDevice current(device_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    return stream;
  }
  void destroy_stream(StreamHandle stream) noexcept override {
    give_back([&] { return cudaStreamDestroy(stream); });
  }
  EventHandle create_event() override { return create_event_with(cudaEventDisableTiming); }
  EventHandle create_timer() override { return create_event_with(cudaEventDefault); }
  void destroy_event(EventHandle event) noexcept override {
    give_back([&] { return cudaEventDestroy(event); });
  }

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
      forget(status);
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
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream),
          "copy to the device");
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             StreamHandle stream) override {
    const CurrentDevice current(device_);
    check(launch_fetch(target, source, bytes, stream), "launch the fetching kernel");
  }
  void clear(std::byte* memory, std::size_t bytes, StreamHandle stream) override {
    const CurrentDevice current(device_);
    check(cudaMemsetAsync(memory, 0, bytes, stream), "clear device memory");
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
  // The device may be lost, and at the end of a program the driver gone, before all is given back.
  template <class Call>
  void give_back(Call call) const noexcept {
    const CurrentDevice current(device_, std::nothrow);
    forget(call());
  }

  int device_;
};

}  // namespace

std::shared_ptr<Gpu> open_gpu(int device) { return std::make_shared<CudaGpu>(device); }

}  // namespace chunkio::device
