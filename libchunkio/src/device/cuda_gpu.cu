#include <cuda.h>
#include <cuda_runtime.h>

#include <new>
#include <optional>
#include <string>

#include <chunkio/error.hpp>

#include "device/dense_kernel.cuh"
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

// No error, but it is kept like one.
bool is_not_ready(cudaError_t status) noexcept {
  if (status != cudaErrorNotReady) return false;
  forget(status);
  return true;
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

// Why there is no device at all, and what helps.
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

// The driver's numbers are those of the runtime, where both have an error.
static_assert(int{CUDA_ERROR_OUT_OF_MEMORY} == cudaErrorMemoryAllocation &&
              int{CUDA_ERROR_DEVICE_UNAVAILABLE} == cudaErrorDevicesUnavailable &&
              int{CUDA_ERROR_ILLEGAL_ADDRESS} == cudaErrorIllegalAddress &&
              int{CUDA_ERROR_CONTEXT_IS_DESTROYED} == cudaErrorContextIsDestroyed &&
              int{CUDA_ERROR_INVALID_CONTEXT} == cudaErrorDeviceUninitialized &&
              int{CUDA_ERROR_DEINITIALIZED} == cudaErrorCudartUnloading &&
              int{CUDA_ERROR_LAUNCH_FAILED} == cudaErrorLaunchFailure);
cudaError_t status_of(CUresult result) noexcept { return static_cast<cudaError_t>(result); }

/// A function of the driver, found at run time: there may be no driver.
/// \throws Error cuda_failed.
template <class Function>
void find_in_driver(const char* name, Function*& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  // As the oldest toolkit has it that this is built with.
  cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (status == cudaSuccess && (found == nullptr || result != cudaDriverEntryPointSuccess)) {
    status = cudaErrorSymbolNotFound;
  }
  check(status, std::string("find ") + name + " in the driver");
  function = reinterpret_cast<Function*>(found);
}

/// The context in which the runtime, too, uses a device. It is never released: with the last
/// reference all would be gone that the caller has in it by way of the runtime.
class PrimaryContext {
 public:
  PrimaryContext() = default;
  /// \throws Error cuda_failed, out_of_resources.
  explicit PrimaryContext(int ordinal) {
    decltype(cuInit)* init = nullptr;
    decltype(cuDeviceGet)* get_device = nullptr;
    decltype(cuDevicePrimaryCtxRetain)* retain = nullptr;
    find_in_driver("cuInit", init);
    find_in_driver("cuDeviceGet", get_device);
    find_in_driver("cuDevicePrimaryCtxRetain", retain);
    find_in_driver("cuCtxPushCurrent", push_);
    find_in_driver("cuCtxPopCurrent", pop_);
    CUdevice device = 0;
    check(status_of(init(0)), "start the driver");
    check(status_of(get_device(&device, ordinal)), "select the device");
    check(status_of(retain(&handle_, device)),
          "make a context on the device, where something else may be in the way (nvidia-smi)");
  }

  /// Onto the calling thread's stack.
  [[nodiscard]] cudaError_t push() const noexcept { return status_of(push_(handle_)); }
  void pop() const noexcept {
    CUcontext handle = nullptr;
    static_cast<void>(pop_(&handle));
  }

 private:
  CUcontext handle_ = nullptr;
  decltype(cuCtxPushCurrent)* push_ = nullptr;
  decltype(cuCtxPopCurrent)* pop_ = nullptr;
};

/// Makes a device that of the calling thread while it lives: the caller may be using another one.
///
/// With the driver's stack of contexts, which goes back to what was there, also to nothing. From
/// CUDA 12 on, cudaSetDevice() makes a context where there is none: going back with it would put
/// one of some hundred MiB on the first GPU, for every process with a thread that never chose
/// another.
class CurrentDevice {
 public:
  /// \throws Error cuda_failed.
  explicit CurrentDevice(const PrimaryContext& context) : CurrentDevice(context, std::nothrow) {
    check(status_, "select the device");
  }
  /// Tries to.
  CurrentDevice(const PrimaryContext& context, std::nothrow_t) noexcept
      : context_(context), status_(context.push()) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (status_ == cudaSuccess) context_.pop();
  }

  /// Nothing that was made in the context is there any more.
  [[nodiscard]] bool is_gone() const noexcept {
    return status_ == cudaErrorContextIsDestroyed || status_ == cudaErrorDeviceUninitialized ||
           status_ == cudaErrorCudartUnloading;
  }

 private:
  const PrimaryContext& context_;
  cudaError_t status_;
};

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(int device) {
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
    context_ = PrimaryContext(device);
  }

  std::byte* allocate(std::size_t bytes) override {
    const CurrentDevice current(context_);
    void* memory = nullptr;
    check_bytes(cudaMalloc(&memory, bytes), bytes, "device memory");
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) noexcept override {
    give_back([&] { return cudaFree(memory); });
  }
  DeviceMemory memory() override {
    const CurrentDevice current(context_);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "tell how much device memory is free");
    return {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(total_bytes)};
  }

  std::byte* allocate_pinned(std::size_t bytes) override {
    const CurrentDevice current(context_);
    void* memory = nullptr;
    check_lock(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "allocate", bytes,
               " of page-locked memory");
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) noexcept override {
    give_back([&] { return cudaFreeHost(memory); });
  }
  void pin(std::span<std::byte> memory) override {
    const CurrentDevice current(context_);
    check_lock(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable),
               "page-lock", memory.size(), "");
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    give_back([&] { return cudaHostUnregister(memory.data()); });
  }

  StreamHandle create_stream() override {
    const CurrentDevice current(context_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    return stream;
  }
  void destroy_stream(StreamHandle stream) noexcept override {
    give_back([&] { return cudaStreamDestroy(stream); });
  }
  EventHandle create_event(EventUse use) override {
    const CurrentDevice current(context_);
    // Who waits sleeps: the CPUs have images to read meanwhile.
    const unsigned flags = use == EventUse::order   ? cudaEventDisableTiming
                           : use == EventUse::timer ? cudaEventDefault
                                                    : cudaEventBlockingSync;
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, flags), "create an event");
    return event;
  }
  void destroy_event(EventHandle event) noexcept override {
    give_back([&] { return cudaEventDestroy(event); });
  }

  void record(EventHandle event, StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(cudaEventRecord(event, stream), "record an event");
  }
  void wait(StreamHandle stream, EventHandle event) override {
    const CurrentDevice current(context_);
    check(cudaStreamWaitEvent(stream, event), "make a stream wait");
  }
  bool is_done(EventHandle event) override {
    const CurrentDevice current(context_);
    const cudaError_t status = cudaEventQuery(event);
    if (is_not_ready(status)) return false;
    check(status, "look at an event");
    return true;
  }
  void synchronize(EventHandle event) override {
    const CurrentDevice current(context_);
    check(cudaEventSynchronize(event), "wait for an event");
  }
  void synchronize(StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(cudaStreamSynchronize(stream), "wait for a stream");
  }
  std::optional<double> seconds_between(EventHandle begin, EventHandle end) override {
    const CurrentDevice current(context_);
    float milliseconds = 0;
    const cudaError_t status = cudaEventElapsedTime(&milliseconds, begin, end);
    if (is_not_ready(status)) return std::nullopt;
    check(status, "take the time between two events");
    return static_cast<double>(milliseconds) / 1000;
  }

  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream),
          "copy to the device");
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(launch_fetch(target, source, bytes, stream), "launch the fetching kernel");
  }
  void clear(std::byte* memory, std::size_t bytes, StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(cudaMemsetAsync(memory, 0, bytes, stream), "clear device memory");
  }
  void require_supported(const NormalizePlan& plan) override {
    if (fits_kernel(plan)) return;
    throw Error(ErrorCode::unsupported, "rows of " + std::to_string(plan.crop.width) +
                                            " pixels are too long for the kernel; crop the "
                                            "images to fewer columns");
  }
  void normalize(const NormalizePlan& plan, const LabelPlan& labels, const BatchWork& work,
                 StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(launch_normalize(plan, labels, work, stream), "launch the normalising kernel");
  }
  void densify(const DensePlan& plan, const LabelPlan& labels, const DenseWork& work,
               StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(launch_densify(plan, labels, work, stream), "launch the kernel of dense rows");
  }
  void gather(const GatherWork& work, StreamHandle stream) override {
    const CurrentDevice current(context_);
    check(launch_gather(work, stream), "launch the gathering kernel");
  }

 private:
  // The device may be lost before all is given back, or the context gone (cudaDeviceReset(), the
  // end of the program). Then the call would be made in the caller's, or make one.
  template <class Call>
  void give_back(Call call) const noexcept {
    const CurrentDevice current(context_, std::nothrow);
    if (!current.is_gone()) forget(call());
  }

  PrimaryContext context_;
};

}  // namespace

std::shared_ptr<Gpu> open_gpu(int device) { return std::make_shared<CudaGpu>(device); }

}  // namespace chunkio::device
