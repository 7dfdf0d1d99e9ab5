/// The CUDA device, with managed memory for that of the device, so that tests look at it from the
/// host.

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "support/gpu_of_tests.hpp"

namespace chunkio::test {
namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
  }
}

/// A function of the driver, which need not be there.
template <class Function>
Function* in_driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), name);
#endif
  if (found == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<Function*>(found);
}

/// A thread whose work a stream waits for. They tell each other by numbers in page-locked memory:
/// cudaLaunchHostFunc() has one thread for all streams, where work that waits for something keeps
/// all of them waiting, and a thread that calls CUDA can be kept waiting by cudaFree() and by
/// copies of pageable memory, which wait for the stream.
class StreamWorker {
 public:
  explicit StreamWorker(device::StreamHandle stream) : stream_(stream) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, 2 * sizeof *begun_, cudaHostAllocPortable), "cudaHostAlloc");
    begun_ = new (memory) std::atomic<std::uint32_t>(0);
    done_ = new (begun_ + 1) std::atomic<std::uint32_t>(0);
    thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
  }
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;
  ~StreamWorker() {
    thread_ = {};
    static_cast<void>(cudaStreamSynchronize(stream_));  // it may still look at the numbers
    static_cast<void>(cudaFreeHost(begun_));
  }

  void push(std::function<void()> work) {
    static auto* const write = in_driver<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
    static auto* const wait = in_driver<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32");
    const std::uint32_t number = ++pushed_;
    const auto address = [](std::atomic<std::uint32_t>* of) {
      return reinterpret_cast<CUdeviceptr>(of);
    };
    if (write(stream_, address(begun_), number, CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS ||
        wait(stream_, address(done_), number, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
      throw std::runtime_error("a stream cannot be made to wait for a thread");
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.push(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !queue_.empty(); })) {
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop();
      lock.unlock();
      const std::uint32_t number = *done_ + 1;
      while (*begun_ < number) std::this_thread::sleep_for(std::chrono::microseconds(10));
      work();
      *done_ = number;
      lock.lock();
    }
  }

  device::StreamHandle stream_;
  std::atomic<std::uint32_t>* begun_ = nullptr;  ///< The stream came to the work of this number.
  std::atomic<std::uint32_t>* done_ = nullptr;   ///< It may go on behind it.
  std::uint32_t pushed_ = 0;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::queue<std::function<void()>> queue_;
  std::jthread thread_;
};

class CudaGpuOfTests final : public GpuOfTests {
 public:
  void run_on(device::StreamHandle stream, std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<StreamWorker>& worker = workers_[stream];
    if (!worker) worker = std::make_unique<StreamWorker>(stream);
    worker->push(std::move(work));
  }
  void drain() noexcept override { static_cast<void>(cudaDeviceSynchronize()); }

  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    check(cudaMallocManaged(&memory, bytes), "cudaMallocManaged");
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) noexcept override { gpu_->free(memory); }
  device::DeviceMemory memory() override { return gpu_->memory(); }
  std::byte* allocate_pinned(std::size_t bytes) override { return gpu_->allocate_pinned(bytes); }
  void free_pinned(std::byte* memory) noexcept override { gpu_->free_pinned(memory); }
  void pin(std::span<std::byte> memory) override { gpu_->pin(memory); }
  void unpin(std::span<std::byte> memory) noexcept override { gpu_->unpin(memory); }

  device::StreamHandle create_stream() override { return gpu_->create_stream(); }
  void destroy_stream(device::StreamHandle stream) noexcept override {
    {
      // Its end is waited for without the lock, which run_on() needs.
      std::unique_lock lock(mutex_);
      const auto worker = workers_.extract(stream);
      lock.unlock();
    }
    gpu_->destroy_stream(stream);
  }
  device::EventHandle create_event(device::EventUse use) override {
    return gpu_->create_event(use);
  }
  void destroy_event(device::EventHandle event) noexcept override { gpu_->destroy_event(event); }
  void record(device::EventHandle event, device::StreamHandle stream) override {
    gpu_->record(event, stream);
  }
  void wait(device::StreamHandle stream, device::EventHandle event) override {
    gpu_->wait(stream, event);
  }
  bool is_done(device::EventHandle event) override { return gpu_->is_done(event); }
  void synchronize(device::EventHandle event) override { gpu_->synchronize(event); }
  void synchronize(device::StreamHandle stream) override { gpu_->synchronize(stream); }
  std::optional<double> seconds_between(device::EventHandle begin,
                                        device::EventHandle end) override {
    return gpu_->seconds_between(begin, end);
  }
  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      device::StreamHandle stream) override {
    gpu_->copy_to_device(target, source, bytes, stream);
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             device::StreamHandle stream) override {
    gpu_->fetch(target, source, bytes, stream);
  }
  void clear(std::byte* memory, std::size_t bytes, device::StreamHandle stream) override {
    gpu_->clear(memory, bytes, stream);
  }
  void require_supported(const device::NormalizePlan& plan) override {
    gpu_->require_supported(plan);
  }
  void normalize(const device::NormalizePlan& plan, const device::LabelPlan& labels,
                 const device::BatchWork& work, device::StreamHandle stream) override {
    gpu_->normalize(plan, labels, work, stream);
  }
  void densify(const device::DensePlan& plan, const device::LabelPlan& labels,
               const device::DenseWork& work, device::StreamHandle stream) override {
    gpu_->densify(plan, labels, work, stream);
  }
  void gather(const device::GatherWork& work, device::StreamHandle stream) override {
    gpu_->gather(work, stream);
  }

 private:
  std::shared_ptr<device::Gpu> gpu_ = device::open_gpu(0);
  std::mutex mutex_;
  std::map<device::StreamHandle, std::unique_ptr<StreamWorker>> workers_;
};

/// Ends the program where there is no device. GTEST_SKIP() would count its tests as passed.
class NeedsDevice final : public ::testing::Environment {
 public:
  void SetUp() override {
    // Streams that share a connection wait for each other, and some tests keep one waiting.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) skip_all(cudaGetErrorString(status));
    int host_reads = 0;
    check(cudaDeviceGetAttribute(&host_reads, cudaDevAttrConcurrentManagedAccess, 0),
          "cudaDeviceGetAttribute");
    if (host_reads == 0) skip_all("the host cannot look at memory that a kernel may be using");
  }

 private:
  [[noreturn]] static void skip_all(const char* why) {
    std::printf("[  SKIPPED ] %d tests, no CUDA device: %s\n",
                ::testing::UnitTest::GetInstance()->test_to_run_count(), why);
    std::exit(0);
  }
};

[[maybe_unused]] const ::testing::Environment* const kNeedsDevice =
    ::testing::AddGlobalTestEnvironment(new NeedsDevice);

}  // namespace

std::unique_ptr<GpuOfTests> make_gpu_of_tests() { return std::make_unique<CudaGpuOfTests>(); }

}  // namespace chunkio::test
