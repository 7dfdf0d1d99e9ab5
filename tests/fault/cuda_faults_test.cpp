/// What becomes of CUDA's errors: codes, texts, hints, and devices that are lost.
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/gpu.hpp"
#include "fault/fake_cuda_runtime.hpp"
#include "support/errors.hpp"

namespace chunkio::device {
namespace {

using namespace fake_cuda;
using test::expect_error;

class CudaFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_runtime = {};
    g_device = 0;
    g_pushed.clear();
    g_last = cudaSuccess;
  }

  static void expect_all_given_back() {
    for (const auto& [what, count] : g_runtime.given) EXPECT_EQ(count, 0) << what;
  }
};

TEST_F(CudaFaultsTest, NoDriverAnOldOneAndNoDeviceAreToldApart) {
  const std::string built = std::to_string(CUDART_VERSION / 1000);
  const auto expect = [](const std::vector<std::string>& parts) {
    expect_error(ErrorCode::cuda_failed, parts, [] { static_cast<void>(open_gpu(0)); });
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
    expect_error(ErrorCode::cuda_failed,
                 {"no CUDA device " + std::to_string(device) + ":", "sees 2, numbered from 0",
                  "CUDA_VISIBLE_DEVICES"},
                 [&] { static_cast<void>(open_gpu(device)); });
  }
  for (const char* name : {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                           "cuCtxPopCurrent"}) {
    g_runtime.missing = name;
    expect_error(ErrorCode::cuda_failed,
                 {std::string("find ") + name + " in the driver", "cudaErrorSymbolNotFound"},
                 [] { static_cast<void>(open_gpu(1)); });
  }
  g_runtime.missing.clear();
  EXPECT_TRUE(g_runtime.contexts.empty());
  g_runtime.failing["cuDevicePrimaryCtxRetain"] = cudaErrorDevicesUnavailable;
  expect_error(ErrorCode::cuda_failed,
               {"make a context on the device", "nvidia-smi", "(cudaErrorDevicesUnavailable)"},
               [] { static_cast<void>(open_gpu(1)); });
  // Another process may have left no room for a context.
  g_runtime.failing["cuDevicePrimaryCtxRetain"] = cudaErrorMemoryAllocation;
  expect_error(
      ErrorCode::out_of_resources,
      {"make a context on the device", "nvidia-smi", "out of memory (cudaErrorMemoryAllocation)"},
      [] { static_cast<void>(open_gpu(1)); });
  g_runtime.failing = {{"cuInit", cudaErrorSystemDriverMismatch}};
  expect_error(ErrorCode::cuda_failed, {"start the driver", "(cudaErrorSystemDriverMismatch)"},
               [] { static_cast<void>(open_gpu(1)); });
  g_runtime.failing.clear();
  const std::shared_ptr<Gpu> gpu = open_gpu(1);
  g_runtime.failing["cuCtxPushCurrent"] = cudaErrorContextIsDestroyed;
  expect_error(ErrorCode::cuda_failed, {"select the device", "(cudaErrorContextIsDestroyed)"},
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
        event_(gpu.create_event(EventUse::waited_timer)) {
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
         [this] { gpu_.destroy_event(gpu_.create_event(EventUse::order)); }},
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
    expect_error(pin ? ErrorCode::out_of_resources : ErrorCode::cuda_failed,
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
  expect_error(ErrorCode::out_of_resources, {"5000 bytes of device memory", words},
               [&] { static_cast<void>(gpu->allocate(5000)); });
  expect_error(ErrorCode::out_of_resources, {"5000 bytes of page-locked memory", words},
               [&] { static_cast<void>(gpu->allocate_pinned(5000)); });
  std::vector<std::byte> memory(4096);
  expect_error(ErrorCode::out_of_resources, {"page-lock 4096 bytes", words},
               [&] { gpu->pin(memory); });
  for (const cudaError_t refusal :
       {cudaErrorNotSupported, cudaErrorHostMemoryAlreadyRegistered, cudaErrorNotPermitted}) {
    g_runtime.failing["cudaHostRegister"] = refusal;
    expect_error(ErrorCode::out_of_resources, {"page-lock", cudaGetErrorName(refusal)},
                 [&] { gpu->pin(memory); });
    g_runtime.failing["cudaHostAlloc"] = refusal;
    expect_error(ErrorCode::out_of_resources, {"page-locked", cudaGetErrorName(refusal)},
                 [&] { static_cast<void>(gpu->allocate_pinned(5000)); });
  }
  // But a device that is lost is no matter of locking, which one can do without.
  g_runtime.failing["cudaHostRegister"] = cudaErrorIllegalAddress;
  expect_error(ErrorCode::cuda_failed, {"page-lock", "the device is lost"},
               [&] { gpu->pin(memory); });
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
      g_runtime.lost = status;  // Not even the device can be selected.
      for (const Members::Member& member : members.all()) {
        expect_error(
            ErrorCode::cuda_failed,
            {"CUDA cannot", cudaGetErrorName(status), "lost to this process", "last saved state"},
            member.call);
      }
      gpu->unpin(memory);
    }
    expect_all_given_back();
  }
}

}  // namespace
}  // namespace chunkio::device
