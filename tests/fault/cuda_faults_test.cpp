/// What becomes of CUDA's errors: codes, texts, hints, and devices that are lost.
///
/// The linker puts the functions below in the place of the CUDA runtime's (--wrap), so that no
/// driver and no GPU is needed: memory of a device is memory of the host, streams do their work at
/// once, and the kernel does nothing. Any call can be made to fail. The driver's functions, which
/// the library asks the runtime for, are replaced where it asks.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>

#include "device/gpu.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/pixels.hpp"

namespace {

struct Call {
  std::string function;
  int device = 0;  // That of the calling thread.
};

/// What a test asks of the runtime, and what happened.
struct Runtime {
  int devices = 2;
  int driver = CUDART_VERSION;
  std::string missing = {};                         // A function that the driver does not have.
  std::map<std::string, cudaError_t> failing = {};  // Every call of a function.
  int fail_at = 0;                                  // This call on a device, counted from 1 ...
  cudaError_t fail_with = cudaSuccess;              // ... and, if it is lost, all later ones.
  bool fails_forever = false;

  std::vector<Call> calls = {};           // On a device.
  std::map<std::string, int> given = {};  // Handles and memory of a function, not given back.
  std::set<int> contexts = {};            // Devices that have one.
  std::map<void*, unsigned> events = {};  // Flags of each.
};

std::mutex g_mutex;
Runtime g_runtime;                            // Guarded by g_mutex.
thread_local int g_device = 0;                // What the thread chose.
thread_local std::vector<int> g_pushed = {};  // The driver's stack, with devices for contexts.
thread_local cudaError_t g_last = cudaSuccess;

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
  const int number = static_cast<int>(g_runtime.calls.size());
  const bool reached =
      g_runtime.fail_at > 0 && (g_runtime.fails_forever ? number >= g_runtime.fail_at
                                                        : count && number == g_runtime.fail_at);
  if (reached) status = g_runtime.fail_with;
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

namespace chunkio::device {
namespace {

class CudaFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_runtime = {};
    g_device = 0;
    g_pushed.clear();
    g_last = cudaSuccess;
  }

  static void expect_all_given_back(const std::string& when = {}) {
    for (const auto& [what, count] : g_runtime.given) EXPECT_EQ(count, 0) << what << when;
  }
};

TEST_F(CudaFaultsTest, NoDriverAnOldOneAndNoDeviceAreToldApart) {
  const std::string built = std::to_string(CUDART_VERSION / 1000);
  const auto expect = [](const std::vector<std::string>& parts) {
    test::expect_error(ErrorCode::cuda_failed, parts, [] { static_cast<void>(open_gpu(0)); });
    EXPECT_EQ(g_last, cudaSuccess) << "left to the next launch";
  };
  g_runtime.failing["cudaGetDeviceCount"] = cudaErrorInsufficientDriver;
  g_runtime.driver = 0;
  expect({"no NVIDIA driver", "install one for CUDA " + built, "on the CPU"});
  g_runtime.driver = 11080;
  expect({"the driver goes up to CUDA 11.8", "built with " + built + ".", "install a newer driver",
          "build with CUDA 11,", "on the CPU"});

  g_runtime.failing["cudaGetDeviceCount"] = cudaErrorNoDevice;
  expect({"the driver sees no device", "nvidia-smi", "CUDA_VISIBLE_DEVICES", "on the CPU"});
  g_runtime.failing.clear();
  g_runtime.devices = 0;
  expect({"the driver sees no device"});

  // As where the switch between the GPUs of a server is not managed yet.
  g_runtime.failing["cudaGetDeviceCount"] = cudaErrorSystemNotReady;
  expect({"(cudaErrorSystemNotReady)", "nvidia-smi", "on the CPU"});
}

TEST_F(CudaFaultsTest, ADeviceThatIsNotThereOrIsTaken) {
  for (const int device : {-1, 2}) {
    test::expect_error(ErrorCode::cuda_failed,
                       {"no CUDA device " + std::to_string(device) + ":", "sees 2, numbered from 0",
                        "CUDA_VISIBLE_DEVICES"},
                       [&] { static_cast<void>(open_gpu(device)); });
  }
  for (const char* name : {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                           "cuCtxPopCurrent"}) {
    g_runtime.missing = name;
    test::expect_error(ErrorCode::cuda_failed,
                       {std::string("find ") + name + " in the driver", "cudaErrorSymbolNotFound"},
                       [] { static_cast<void>(open_gpu(1)); });
  }
  g_runtime.missing.clear();
  EXPECT_TRUE(g_runtime.contexts.empty());
  g_runtime.failing["cuDevicePrimaryCtxRetain"] = cudaErrorDevicesUnavailable;
  test::expect_error(
      ErrorCode::cuda_failed,
      {"make a context on the device", "nvidia-smi", "(cudaErrorDevicesUnavailable)"},
      [] { static_cast<void>(open_gpu(1)); });
  // Another process may have left no room for a context.
  g_runtime.failing["cuDevicePrimaryCtxRetain"] = cudaErrorMemoryAllocation;
  test::expect_error(
      ErrorCode::out_of_resources,
      {"make a context on the device", "nvidia-smi", "out of memory (cudaErrorMemoryAllocation)"},
      [] { static_cast<void>(open_gpu(1)); });
  g_runtime.failing = {{"cuInit", cudaErrorSystemDriverMismatch}};
  test::expect_error(ErrorCode::cuda_failed,
                     {"start the driver", "(cudaErrorSystemDriverMismatch)"},
                     [] { static_cast<void>(open_gpu(1)); });
  g_runtime.failing.clear();
  const std::shared_ptr<Gpu> gpu = open_gpu(1);
  g_runtime.failing["cuCtxPushCurrent"] = cudaErrorContextIsDestroyed;
  test::expect_error(ErrorCode::cuda_failed, {"select the device", "(cudaErrorContextIsDestroyed)"},
                     [&] { static_cast<void>(gpu->memory()); });
  EXPECT_EQ(g_last, cudaSuccess);
}

/// Calls of one member of Gpu, with what it needs made before.
class Members {
 public:
  explicit Members(Gpu& gpu)
      : gpu_(gpu),
        memory_(gpu.allocate(4096)),
        stream_(gpu.create_stream()),
        event_(gpu.create_waited_timer()) {
    plan_.crop = {.image_height = 8, .image_width = 8, .height = 8, .width = 8};
    plan_.channels.assign(3, {.scale = 1, .bias = 0});
  }
  ~Members() {
    gpu_.destroy_event(event_);
    gpu_.destroy_stream(stream_);
    gpu_.free(memory_);
  }

  /// The function of CUDA behind each, what the text says was tried, and the call.
  struct Member {
    std::string function;
    std::string action;
    std::function<void()> call;
  };
  [[nodiscard]] std::vector<Member> all() {
    return {
        {"cudaMalloc", "allocate 1000 bytes of device memory",
         [this] { gpu_.free(gpu_.allocate(1000)); }},
        {"cudaMemGetInfo", "how much device memory is free", [this] { (void)gpu_.memory(); }},
        {"cudaHostAlloc", "allocate 1000 bytes of page-locked memory",
         [this] { gpu_.free_pinned(gpu_.allocate_pinned(1000)); }},
        {"cudaHostRegister", "page-lock 4096 bytes",
         [this] {
           gpu_.pin({memory_, 4096});
           gpu_.unpin({memory_, 4096});
         }},
        {"cudaStreamCreateWithFlags", "create a stream",
         [this] { gpu_.destroy_stream(gpu_.create_stream()); }},
        {"cudaEventCreateWithFlags", "create an event",
         [this] { gpu_.destroy_event(gpu_.create_event()); }},
        {"cudaEventRecord", "record an event", [this] { gpu_.record(event_, stream_); }},
        {"cudaStreamWaitEvent", "make a stream wait", [this] { gpu_.wait(stream_, event_); }},
        {"cudaEventQuery", "look at an event", [this] { (void)gpu_.is_done(event_); }},
        {"cudaEventSynchronize", "wait for an event", [this] { gpu_.synchronize(event_); }},
        {"cudaStreamSynchronize", "wait for a stream", [this] { gpu_.synchronize(stream_); }},
        {"cudaEventElapsedTime", "take the time between two events",
         [this] { (void)gpu_.seconds_between(event_, event_); }},
        {"cudaMemcpyAsync", "copy to the device",
         [this] { gpu_.copy_to_device(memory_, memory_ + 2048, 2048, stream_); }},
        {"launch", "launch the fetching kernel",
         [this] { gpu_.fetch(memory_, memory_ + 2048, 2048, stream_); }},
        {"cudaMemsetAsync", "clear device memory", [this] { gpu_.clear(memory_, 2048, stream_); }},
        {"launch", "launch the normalising kernel",
         [this] {
           gpu_.normalize(plan_, {},
                          {.images = memory_,
                           .tasks = reinterpret_cast<const RowTask*>(memory_),
                           .num_rows = 1,
                           .output = memory_},
                          stream_);
         }},
        {"launch", "launch the gathering kernel",
         [this] {
           gpu_.gather({.source = memory_,
                        .row_bytes = 16,
                        .tasks = reinterpret_cast<const RowTask*>(memory_),
                        .num_rows = 1,
                        .target = memory_},
                       stream_);
         }},
    };
  }

 private:
  Gpu& gpu_;
  std::byte* memory_;
  StreamHandle stream_;
  EventHandle event_;
  NormalizePlan plan_;
};

TEST_F(CudaFaultsTest, EveryCallIsMadeOnItsDeviceAndLeavesThatOfTheCaller) {
  const std::shared_ptr<Gpu> gpu = open_gpu(1);
  {
    Members members(*gpu);
    // The caller has chosen nothing, or has a context current: of the other device, or of this.
    for (const std::vector<int>& before : std::vector<std::vector<int>>{{}, {0}, {1}}) {
      for (const Members::Member& member : members.all()) {
        for (const bool fails : {false, true}) {
          SCOPED_TRACE(member.function + (fails ? ", which fails" : ""));
          g_pushed = before;
          g_runtime.calls.clear();
          g_runtime.failing.clear();
          if (fails) {
            g_runtime.failing[member.function] = cudaErrorInvalidValue;
            EXPECT_THROW(member.call(), Error);
          } else {
            member.call();
          }
          EXPECT_EQ(g_pushed, before);
          ASSERT_FALSE(g_runtime.calls.empty());
          EXPECT_EQ(g_runtime.calls.front().function, member.function);
          for (const Call& call : g_runtime.calls) EXPECT_EQ(call.device, 1) << call.function;
        }
      }
    }
    g_pushed.clear();
    g_runtime.failing.clear();
    g_runtime.calls.clear();
  }
  EXPECT_EQ(g_device, 0);
  EXPECT_EQ(g_runtime.contexts, std::set<int>{1});
  for (const Call& call : g_runtime.calls) EXPECT_EQ(call.device, 1) << call.function;
  expect_all_given_back();
}

TEST_F(CudaFaultsTest, ErrorsSayWhatWasTriedAndCudasWords) {
  const std::shared_ptr<Gpu> gpu = open_gpu(0);
  Members members(*gpu);
  for (const Members::Member& member : members.all()) {
    g_runtime.failing = {{member.function, cudaErrorInvalidValue}};
    // Locking is refused in many ways, and one can do without.
    const bool pin = member.function == "cudaHostRegister" || member.function == "cudaHostAlloc";
    test::expect_error(pin ? ErrorCode::out_of_resources : ErrorCode::cuda_failed,
                       {"CUDA cannot ", member.action, "invalid argument (cudaErrorInvalidValue)"},
                       member.call);
    EXPECT_EQ(g_last, cudaSuccess) << member.function << ": left to the next launch";
  }
  g_runtime.failing.clear();
}

TEST_F(CudaFaultsTest, MemoryThatIsRefusedIsAnErrorOfResources) {
  const std::shared_ptr<Gpu> gpu = open_gpu(0);
  g_runtime.failing = {{"cudaMalloc", cudaErrorMemoryAllocation},
                       {"cudaHostAlloc", cudaErrorMemoryAllocation},
                       {"cudaHostRegister", cudaErrorMemoryAllocation}};
  const std::string words = "out of memory (cudaErrorMemoryAllocation)";
  test::expect_error(ErrorCode::out_of_resources, {"5000 bytes of device memory", words},
                     [&] { static_cast<void>(gpu->allocate(5000)); });
  test::expect_error(ErrorCode::out_of_resources, {"5000 bytes of page-locked memory", words},
                     [&] { static_cast<void>(gpu->allocate_pinned(5000)); });
  std::vector<std::byte> memory(4096);
  test::expect_error(ErrorCode::out_of_resources, {"page-lock 4096 bytes", words},
                     [&] { gpu->pin(memory); });
  for (const cudaError_t refusal :
       {cudaErrorNotSupported, cudaErrorHostMemoryAlreadyRegistered, cudaErrorNotPermitted}) {
    g_runtime.failing["cudaHostRegister"] = refusal;
    test::expect_error(ErrorCode::out_of_resources, {"page-lock", cudaGetErrorName(refusal)},
                       [&] { gpu->pin(memory); });
    g_runtime.failing["cudaHostAlloc"] = refusal;
    test::expect_error(ErrorCode::out_of_resources, {"page-locked", cudaGetErrorName(refusal)},
                       [&] { static_cast<void>(gpu->allocate_pinned(5000)); });
  }
  EXPECT_EQ(g_last, cudaSuccess);
  g_runtime.failing.clear();
  expect_all_given_back();
}

TEST_F(CudaFaultsTest, AnErrorThatTheCallerLeftIsNotThatOfAKernel) {
  const std::shared_ptr<Gpu> gpu = open_gpu(0);
  Members members(*gpu);
  for (const Members::Member& member : members.all()) {
    if (member.function != "launch") continue;
    g_last = cudaErrorNotReady;
    EXPECT_NO_THROW(member.call());
    EXPECT_EQ(g_last, cudaErrorNotReady) << "it is the caller's";
    g_last = cudaSuccess;
  }
}

TEST_F(CudaFaultsTest, EventsHaveNoMoreThanTheyAreFor) {
  const std::shared_ptr<Gpu> gpu = open_gpu(0);
  const GpuEvent event(gpu);
  const GpuTimer timer(gpu);
  const GpuWaitedTimer waited(gpu);
  EXPECT_EQ(g_runtime.events.at(event.get()), cudaEventDisableTiming);
  EXPECT_EQ(g_runtime.events.at(timer.get()), cudaEventDefault);
  EXPECT_EQ(g_runtime.events.at(waited.get()), cudaEventBlockingSync);
}

TEST_F(CudaFaultsTest, WithTheContextAllIsGoneThatWasInIt) {
  const std::shared_ptr<Gpu> gpu = open_gpu(1);
  std::optional<GpuStream> stream(gpu);
  std::optional<PinnedBuffer> memory(std::in_place, gpu, std::size_t{4096});
  // cudaDeviceReset() by the caller, or the end of the program.
  for (const cudaError_t status :
       {cudaErrorContextIsDestroyed, cudaErrorDeviceUninitialized, cudaErrorCudartUnloading}) {
    g_runtime.failing["cuCtxPushCurrent"] = status;
    g_runtime.calls.clear();
    gpu->destroy_stream(stream->get());
    gpu->free_pinned(memory->get());
    EXPECT_TRUE(g_runtime.calls.empty()) << "in the context of the caller, or in a new one";
  }
  g_runtime.failing.clear();
  EXPECT_EQ(g_runtime.contexts, std::set<int>{1});
  stream.reset();
  memory.reset();
  expect_all_given_back();
}

TEST_F(CudaFaultsTest, AnEventThatIsNotDoneIsNoError) {
  const std::shared_ptr<Gpu> gpu = open_gpu(0);
  const GpuTimer event(gpu);
  g_runtime.failing = {{"cudaEventQuery", cudaErrorNotReady},
                       {"cudaEventElapsedTime", cudaErrorNotReady}};
  EXPECT_FALSE(gpu->is_done(event.get()));
  EXPECT_EQ(g_last, cudaSuccess) << "left to the next launch";
  EXPECT_EQ(gpu->seconds_between(event.get(), event.get()), std::nullopt);
  EXPECT_EQ(g_last, cudaSuccess) << "left to the next launch";
  g_runtime.failing.clear();
  EXPECT_TRUE(gpu->is_done(event.get()));
  EXPECT_EQ(gpu->seconds_between(event.get(), event.get()), 0.25e-3);
}

TEST_F(CudaFaultsTest, ADeviceThatIsLostIsSaidToBeAndDestructorsKeepQuiet) {
  for (const cudaError_t status :
       {cudaErrorLaunchFailure, cudaErrorIllegalAddress, cudaErrorECCUncorrectable}) {
    g_runtime = {};
    const std::shared_ptr<Gpu> gpu = open_gpu(1);
    {
      Members members(*gpu);
      std::vector<std::byte> memory(4096);
      gpu->pin(memory);
      // Not even the device can be selected.
      g_runtime.fail_at = 1;
      g_runtime.fail_with = status;
      g_runtime.fails_forever = true;
      for (const Members::Member& member : members.all()) {
        test::expect_error(
            ErrorCode::cuda_failed,
            {"CUDA cannot", cudaGetErrorName(status), "lost to this process", "last saved state"},
            member.call);
      }
      gpu->unpin(memory);
    }
    expect_all_given_back();
  }
}

/// A few batches from a file, as a trainer takes them.
class LoaderFaultsTest : public CudaFaultsTest {
 protected:
  void SetUp() override {
    CudaFaultsTest::SetUp();
    path_ = folder_.file("train.h5");
    test::write_packed(path_, {.num_samples = 11, .height = 6, .width = 5, .chunk_samples = 4});
  }

  /// Whether there was a batch. An error is neither forgotten nor hidden by what fails after it.
  static bool next(cuda::DeviceLoader& loader) {
    try {
      return loader.next(nullptr).has_value();
    } catch (const Error& first) {
      try {
        static_cast<void>(loader.next(nullptr));
        ADD_FAILURE() << "the error is gone: " << first.what();
      } catch (const Error& again) {
        EXPECT_STREQ(again.what(), first.what());
      }
      throw;
    }
  }
  /// \returns batches of two epochs.
  std::int64_t run(const cuda::DeviceOptions& options) {
    cuda::DeviceLoader loader(
        Loader(Dataset::open(path_), {.batch_size = 4, .seed = 3, .num_threads = 1}), options);
    std::int64_t batches = 0;
    for (const std::int64_t epoch : {0, 1}) {
      loader.start_epoch(epoch);
      while (next(loader)) ++batches;
    }
    return batches;
  }
  [[nodiscard]] static cuda::DeviceOptions options(cuda::DeviceResident resident) {
    return {.device = 1, .normalize = {.mean = {0}, .std = {1}}, .resident = resident};
  }

  test::ScratchFolder folder_;
  std::string path_;
};

TEST_F(LoaderFaultsTest, PageLockingThatIsRefusedIsAnErrorOrGoneWithout) {
  g_runtime.failing["cudaHostRegister"] = cudaErrorMemoryAllocation;
  cuda::DeviceOptions chosen = options(cuda::DeviceResident::off);
  test::expect_error(ErrorCode::out_of_resources,
                     {"page-lock", "out of memory", "ulimit -l", "pin_memory to prefer"},
                     [&] { static_cast<void>(run(chosen)); });
  expect_all_given_back();
  chosen.pin_memory = cuda::PinMemory::prefer;
  EXPECT_EQ(run(chosen), 6);
  // A lost device is not a matter of locking.
  for (const cuda::PinMemory pin : {cuda::PinMemory::require, cuda::PinMemory::prefer}) {
    g_runtime.failing["cudaHostRegister"] = cudaErrorIllegalAddress;
    chosen.pin_memory = pin;
    try {
      static_cast<void>(run(chosen));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cuda_failed);
      EXPECT_EQ(std::string(error.what()).find("ulimit"), std::string::npos) << error.what();
    }
  }
  expect_all_given_back();
}

TEST_F(LoaderFaultsTest, ADeviceLostAtAnyCallIsOneErrorAndNothingIsKept) {
  for (const auto resident : {cuda::DeviceResident::off, cuda::DeviceResident::require}) {
    g_runtime = {};
    EXPECT_EQ(run(options(resident)), 6);
    expect_all_given_back();
    const int calls = static_cast<int>(g_runtime.calls.size());
    int failed = 0;
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE("lost at call " + std::to_string(n) + " of " + std::to_string(calls));
      g_runtime = {};
      g_runtime.fail_at = n;
      g_runtime.fail_with = cudaErrorIllegalAddress;
      g_runtime.fails_forever = true;
      try {
        EXPECT_EQ(run(options(resident)), 6);  // Lost when all was delivered.
      } catch (const Error& error) {
        ++failed;
        EXPECT_EQ(error.code(), ErrorCode::cuda_failed) << error.what();
        EXPECT_NE(std::string(error.what()).find("(cudaErrorIllegalAddress); the device is lost"),
                  std::string::npos)
            << error.what();
      }
      expect_all_given_back();
      if (HasFailure()) return;
    }
    EXPECT_GT(failed, calls / 2);
  }
}

TEST_F(LoaderFaultsTest, MemoryRefusedAtAnyCallLeavesNothingBehind) {
  for (const auto resident : {cuda::DeviceResident::off, cuda::DeviceResident::automatic}) {
    g_runtime = {};
    EXPECT_EQ(run(options(resident)), 6);
    const int calls = static_cast<int>(g_runtime.calls.size());
    int refused = 0;
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
      g_runtime = {};
      g_runtime.fail_at = n;
      g_runtime.fail_with = cudaErrorMemoryAllocation;
      try {
        EXPECT_EQ(run(options(resident)), 6);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.code(), ErrorCode::out_of_resources) << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
      expect_all_given_back();
      if (HasFailure()) return;
    }
    EXPECT_GT(refused, 0);
  }
}

}  // namespace
}  // namespace chunkio::device
