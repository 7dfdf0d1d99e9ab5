/// A GPU that counts what is asked of it, ends where a test says, and can be made to fail at any
/// call.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "support/gpu_of_tests.hpp"

namespace chunkio::test {

class WatchedGpu : public device::Gpu {
 public:
  /// The n-th call of a member, from 1 on, and all later ones throw.
  void fail_from(const std::string& member, int n) {
    const std::lock_guard lock(mutex_);
    failing_[member] = n;
  }
  /// The n-th call alone.
  void fail_once(const std::string& member, int n) {
    const std::lock_guard lock(mutex_);
    failing_once_[member] = n;
  }
  [[nodiscard]] int calls(const std::string& member) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(member);
    return found == calls_.end() ? 0 : found->second;
  }
  /// Everything that was taken and not given back: memory, streams, events, page locks.
  [[nodiscard]] std::int64_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }
  /// Of the device, 1 GiB unless said.
  void set_capacity(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
  }
  [[nodiscard]] std::int64_t allocated_bytes() const {
    const std::lock_guard lock(mutex_);
    return allocated_bytes_;
  }
  /// How often memory that was being copied from was unlocked: CUDA promises nothing for that.
  [[nodiscard]] int unlocked_too_early() const {
    const std::lock_guard lock(mutex_);
    return unlocked_too_early_;
  }
  /// How long each copy and each kernel take beside what they take here.
  void slow_down(std::chrono::microseconds copy, std::chrono::microseconds kernel) {
    copy_takes_ = copy;
    kernel_takes_ = kernel;
  }
  /// What each copy does first. To be called before there are any.
  void before_copies(std::function<void()> work) { before_copies_ = std::move(work); }
  /// Work of the test's own.
  void run_on(device::StreamHandle stream, std::function<void()> work) {
    gpu_->run_on(stream, std::move(work));
  }

  std::byte* allocate(std::size_t bytes) override {
    count("allocate");
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<std::int64_t>(bytes);
    if (size > capacity_ - allocated_bytes_) {
      throw Error(ErrorCode::out_of_resources,
                  "the GPU of the test has no " + std::to_string(bytes) + " bytes to allocate");
    }
    std::byte* const memory = gpu_->allocate(bytes);
    try {
      sizes_[memory] = size;
    } catch (...) {
      gpu_->free(memory);
      throw;
    }
    allocated_bytes_ += size;
    ++live_;
    return memory;
  }
  void free(std::byte* memory) noexcept override {
    {
      // Forgotten first: another thread may be given the same address.
      const std::lock_guard lock(mutex_);
      allocated_bytes_ -= sizes_.at(memory);
      sizes_.erase(memory);
      --live_;
    }
    gpu_->free(memory);
  }
  device::DeviceMemory memory() override {
    const std::lock_guard lock(mutex_);
    return {std::max<std::int64_t>(capacity_ - allocated_bytes_, 0), capacity_};
  }

  std::byte* allocate_pinned(std::size_t bytes) override {
    count("allocate_pinned");
    std::byte* const memory = gpu_->allocate_pinned(bytes);
    add_locked({memory, bytes}, [&] { gpu_->free_pinned(memory); });
    return memory;
  }
  void free_pinned(std::byte* memory) noexcept override {
    remove_locked(memory);
    gpu_->free_pinned(memory);
  }
  void pin(std::span<std::byte> memory) override {
    count("pin");
    gpu_->pin(memory);
    add_locked(memory, [&] { gpu_->unpin(memory); });
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    remove_locked(memory.data());
    gpu_->unpin(memory);
  }

  device::StreamHandle create_stream() override {
    count("create_stream");
    const device::StreamHandle stream = gpu_->create_stream();
    add_live(1);
    return stream;
  }
  void destroy_stream(device::StreamHandle stream) noexcept override {
    add_live(-1);
    gpu_->destroy_stream(stream);
  }
  device::EventHandle create_event(device::EventUse use) override {
    count("create_event");
    const device::EventHandle event = gpu_->create_event(use);
    add_live(1);
    return event;
  }
  void destroy_event(device::EventHandle event) noexcept override {
    add_live(-1);
    gpu_->destroy_event(event);
  }

  void record(device::EventHandle event, device::StreamHandle stream) override {
    count("record");
    gpu_->record(event, stream);
  }
  void wait(device::StreamHandle stream, device::EventHandle event) override {
    count("wait");
    gpu_->wait(stream, event);
  }
  bool is_done(device::EventHandle event) override {
    count("is_done");
    return gpu_->is_done(event);
  }
  void synchronize(device::EventHandle event) override {
    count_synchronize();
    gpu_->synchronize(event);
  }
  void synchronize(device::StreamHandle stream) override {
    count_synchronize();
    gpu_->synchronize(stream);
  }
  std::optional<double> seconds_between(device::EventHandle begin,
                                        device::EventHandle end) override {
    count("seconds_between");
    return gpu_->seconds_between(begin, end);
  }

  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      device::StreamHandle stream) override {
    count("copy_to_device");
    slow_copy(stream);
    Copies copy;
    copy.emplace_back(*gpu_, source);
    gpu_->copy_to_device(target, source, bytes, stream);
    add_copy(std::move(copy), stream);
    if (!is_locked(source, bytes)) gpu_->synchronize(stream);  // CUDA keeps the caller waiting.
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             device::StreamHandle stream) override {
    count("fetch");
    if (!is_locked(source, bytes)) {
      throw Error(ErrorCode::cuda_failed, "a device cannot read memory that is not page-locked");
    }
    slow_copy(stream);
    Copies copy;
    copy.emplace_back(*gpu_, source);
    gpu_->fetch(target, source, bytes, stream);
    add_copy(std::move(copy), stream);
  }
  void clear(std::byte* memory, std::size_t bytes, device::StreamHandle stream) override {
    count("clear");
    gpu_->clear(memory, bytes, stream);
  }
  void require_supported(const device::NormalizePlan& plan) override {
    count("require_supported");
    gpu_->require_supported(plan);
  }
  void normalize(const device::NormalizePlan& plan, const device::LabelPlan& labels,
                 const device::BatchWork& work, device::StreamHandle stream) override {
    count("normalize");
    sleep_on(stream, kernel_takes_);
    gpu_->normalize(plan, labels, work, stream);
  }
  void densify(const device::DensePlan& plan, const device::LabelPlan& labels,
               const device::DenseWork& work, device::StreamHandle stream) override {
    count("densify");
    gpu_->densify(plan, labels, work, stream);
  }
  void gather(const device::GatherWork& work, device::StreamHandle stream) override {
    count("gather");
    gpu_->gather(work, stream);
  }

 private:
  /// A copy that is under way, made before it begins: nothing may fail afterwards.
  struct Copy {
    Copy(device::Gpu& gpu_in, const std::byte* source_in)
        : gpu(gpu_in), source(source_in), done(gpu.create_event(device::EventUse::order)) {}
    ~Copy() { gpu.destroy_event(done); }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    device::Gpu& gpu;
    const std::byte* source;
    device::EventHandle done;
  };
  using Copies = std::list<Copy>;

  void sleep_on(device::StreamHandle stream, std::chrono::microseconds time) {
    if (time.count() > 0) gpu_->run_on(stream, [time] { std::this_thread::sleep_for(time); });
  }
  void slow_copy(device::StreamHandle stream) {
    if (before_copies_) gpu_->run_on(stream, before_copies_);
    sleep_on(stream, copy_takes_);
  }

  bool is_locked(const std::byte* source, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto after = locked_.upper_bound(source);
    return after != locked_.begin() &&
           source + bytes <= std::prev(after)->first + std::prev(after)->second;
  }
  /// Notes a copy that is under way, and forgets those that are not any more.
  void add_copy(Copies copy, device::StreamHandle stream) {
    try {
      gpu_->record(copy.front().done, stream);
    } catch (...) {
      gpu_->synchronize(stream);
      throw;
    }
    const std::lock_guard lock(mutex_);
    copies_.splice(copies_.end(), copy);
    copies_.remove_if([this](const Copy& noted) { return gpu_->is_done(noted.done); });
  }

  /// Gives the memory back if it cannot be noted.
  template <class GiveBack>
  void add_locked(std::span<const std::byte> memory, const GiveBack& give_back) {
    const std::lock_guard lock(mutex_);
    try {
      locked_[memory.data()] = memory.size();
    } catch (...) {
      give_back();
      throw;
    }
    ++live_;
  }
  void remove_locked(const std::byte* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const std::byte* const end = memory + locked_.at(memory);
    unlocked_too_early_ +=
        static_cast<int>(std::count_if(copies_.begin(), copies_.end(), [&](const auto& copy) {
          return copy.source >= memory && copy.source < end && !gpu_->is_done(copy.done);
        }));
    locked_.erase(memory);
    --live_;
  }

  void count(const std::string& member) {
    const std::lock_guard lock(mutex_);
    const int call = ++calls_[member];
    const auto failing = failing_.find(member);
    const auto once = failing_once_.find(member);
    if ((failing != failing_.end() && call >= failing->second) ||
        (once != failing_once_.end() && call == once->second)) {
      throw Error(member == "allocate" || member == "pin" || member == "allocate_pinned"
                      ? ErrorCode::out_of_resources
                      : ErrorCode::cuda_failed,
                  "the GPU of the test fails at " + member);
    }
  }
  /// Waiting fails where a device was lost, which does nothing any more.
  void count_synchronize() {
    try {
      count("synchronize");
    } catch (...) {
      gpu_->drain();
      throw;
    }
  }
  void add_live(int n) noexcept {
    const std::lock_guard lock(mutex_);
    live_ += n;
  }

  const std::unique_ptr<GpuOfTests> gpu_ = make_gpu_of_tests();
  std::function<void()> before_copies_;
  std::atomic<std::chrono::microseconds> copy_takes_{};
  std::atomic<std::chrono::microseconds> kernel_takes_{};

  mutable std::mutex mutex_;  // Guards what follows.
  std::map<std::string, int> calls_;
  std::map<std::string, int> failing_;
  std::map<std::string, int> failing_once_;
  std::int64_t live_ = 0;
  std::int64_t capacity_ = std::int64_t{1} << 30;
  std::int64_t allocated_bytes_ = 0;
  std::map<const std::byte*, std::int64_t> sizes_;  // Of device memory.
  std::map<const std::byte*, std::size_t> locked_;  // Page-locked memory and its bytes.
  Copies copies_;                                   // Under way.
  int unlocked_too_early_ = 0;
};

}  // namespace chunkio::test
