/// A GPU that is threads and host memory, for the device loader on machines without one.
///
/// Each stream is a thread that does its work in order, and events make threads wait, so what a
/// program forgets to order is out of order here, too, and ThreadSanitizer sees it. Memory ends
/// where a test says, copies from memory that is not page-locked keep their caller waiting as those
/// of CUDA do, and any call can be made to fail.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "device/normalize_tile.hpp"
#include "support/dense_kernel.hpp"
#include "support/kernel_cases.hpp"

namespace chunkio::test {

class FakeGpu : public device::Gpu {
 public:
  ~FakeGpu() override = default;

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
    of(stream).push(std::move(work));
  }

  std::byte* allocate(std::size_t bytes) override {
    count("allocate");
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<std::int64_t>(bytes);
    if (size > capacity_ - allocated_bytes_) {
      throw Error(ErrorCode::out_of_resources,
                  "the fake GPU has no " + std::to_string(bytes) + " bytes to allocate");
    }
    auto memory = std::make_unique<std::byte[]>(bytes);
    sizes_[memory.get()] = size;
    allocated_bytes_ += size;
    ++live_;
    return memory.release();
  }
  // What gives memory back waits for all work, as with CUDA.
  void free(std::byte* memory) noexcept override {
    drain_all();
    {
      const std::lock_guard lock(mutex_);
      allocated_bytes_ -= sizes_.at(memory);
      sizes_.erase(memory);
      --live_;
    }
    delete[] memory;
  }
  device::DeviceMemory memory() override {
    const std::lock_guard lock(mutex_);
    return {std::max<std::int64_t>(capacity_ - allocated_bytes_, 0), capacity_};
  }

  std::byte* allocate_pinned(std::size_t bytes) override {
    count("allocate_pinned");
    auto memory = std::make_unique<std::byte[]>(bytes);
    add_locked(memory.get(), bytes);
    return memory.release();
  }
  void free_pinned(std::byte* memory) noexcept override {
    remove_locked(memory);
    delete[] memory;
  }
  void pin(std::span<std::byte> memory) override {
    count("pin");
    add_locked(memory.data(), memory.size());
  }
  void unpin(std::span<std::byte> memory) noexcept override { remove_locked(memory.data()); }

  device::StreamHandle create_stream() override {
    count("create_stream");
    auto stream = std::make_unique<Stream>();
    const std::lock_guard lock(mutex_);
    streams_.insert(stream.get());
    ++live_;
    return reinterpret_cast<device::StreamHandle>(stream.release());
  }
  void destroy_stream(device::StreamHandle stream) noexcept override {
    add_live(-1);
    {
      const std::lock_guard lock(mutex_);
      streams_.erase(&of(stream));
    }
    delete &of(stream);
  }
  device::EventHandle create_event(device::EventUse use) override {
    count("create_event");
    auto* const event = new std::shared_ptr<Event>(std::make_shared<Event>(use));
    add_live(1);
    return reinterpret_cast<device::EventHandle>(event);
  }
  void destroy_event(device::EventHandle event) noexcept override {
    add_live(-1);
    delete &of(event);
  }

  void record(device::EventHandle handle, device::StreamHandle stream) override {
    count("record");
    const std::int64_t ticket = of(handle)->issue();
    try {
      of(stream).push([event = of(handle), ticket] { event->finish(ticket); });
    } catch (...) {
      of(handle)->finish(ticket);  // as if it had never been recorded
      throw;
    }
  }
  void wait(device::StreamHandle stream, device::EventHandle handle) override {
    count("wait");
    const std::int64_t ticket = of(handle)->last();
    of(stream).push([event = of(handle), ticket] { event->wait(ticket); });
  }
  bool is_done(device::EventHandle event) override {
    count("is_done");
    return of(event)->is_done();
  }
  void synchronize(device::EventHandle handle) override {
    count_synchronize();
    if (of(handle)->use() != device::EventUse::waited_timer) {
      throw Error(ErrorCode::cuda_failed, "who waits for this event does not sleep");
    }
    of(handle)->wait(of(handle)->last());
  }
  void synchronize(device::StreamHandle stream) override {
    count_synchronize();
    of(stream).drain();
  }
  std::optional<double> seconds_between(device::EventHandle begin,
                                        device::EventHandle end) override {
    count("seconds_between");
    const auto from = of(begin)->done_at();
    const auto to = of(end)->done_at();
    if (!from || !to) return std::nullopt;
    return std::chrono::duration<double>(*to - *from).count();
  }

  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      device::StreamHandle stream) override {
    count("copy_to_device");
    const bool locked = add_copied(source, bytes);
    push_copy(target, source, bytes, stream);
    if (!locked) of(stream).drain();
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             device::StreamHandle stream) override {
    count("fetch");
    if (!add_copied(source, bytes)) {
      throw Error(ErrorCode::cuda_failed, "a device cannot read memory that is not page-locked");
    }
    push_copy(target, source, bytes, stream);
  }
  void clear(std::byte* memory, std::size_t bytes, device::StreamHandle stream) override {
    count("clear");
    of(stream).push([memory, bytes] { std::memset(memory, 0, bytes); });
  }
  void require_supported(const device::NormalizePlan&) override { count("require_supported"); }
  void normalize(const device::NormalizePlan& plan, const device::LabelPlan& labels,
                 const device::BatchWork& work, device::StreamHandle stream) override {
    count("normalize");
    of(stream).push([this, plan, labels, work] {
      std::this_thread::sleep_for(kernel_takes_.load());
      make_batch(plan, labels, work);
    });
  }
  void densify(const device::DensePlan& plan, const device::LabelPlan& labels,
               const device::DenseWork& work, device::StreamHandle stream) override {
    count("densify");
    of(stream).push([plan, labels, work] { run_dense_kernels(plan, labels, work); });
  }
  void gather(const device::GatherWork& work, device::StreamHandle stream) override {
    count("gather");
    of(stream).push([work] {
      const auto bytes = static_cast<std::size_t>(work.row_bytes);
      for (std::int64_t i = 0; i < work.num_rows; ++i) {
        std::memcpy(work.target + i * work.row_bytes,
                    work.source + work.tasks[i].row * work.row_bytes, bytes);
      }
    });
  }

 private:
  using Clock = std::chrono::steady_clock;

  class Event {
   public:
    explicit Event(device::EventUse use) : use_(use) {}
    std::int64_t issue() {
      const std::lock_guard lock(mutex_);
      return ++issued_;
    }
    [[nodiscard]] std::int64_t last() {
      const std::lock_guard lock(mutex_);
      return issued_;
    }
    [[nodiscard]] bool is_done() {
      const std::lock_guard lock(mutex_);
      return done_ >= issued_;
    }
    [[nodiscard]] std::optional<Clock::time_point> done_at() {
      const std::lock_guard lock(mutex_);
      if (use_ == device::EventUse::order || issued_ == 0) {
        throw Error(ErrorCode::cuda_failed, "the time of an event that has none");
      }
      if (done_ < issued_) return std::nullopt;
      return done_at_;
    }
    [[nodiscard]] device::EventUse use() const noexcept { return use_; }
    void finish(std::int64_t ticket) {
      const std::lock_guard lock(mutex_);
      done_ = std::max(done_, ticket);  // one that was never recorded may be finished first
      done_at_ = Clock::now();
      changed_.notify_all();
    }
    void wait(std::int64_t ticket) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return done_ >= ticket; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t issued_ = 0;
    std::int64_t done_ = 0;
    Clock::time_point done_at_ = {};
    const device::EventUse use_;
  };

  class Stream {
   public:
    void push(std::function<void()> work) {
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(work));
      }
      changed_.notify_all();
    }
    void drain() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return queue_.empty(); });
    }

   private:
    void run(std::stop_token stop) {
      std::unique_lock lock(mutex_);
      while (changed_.wait(lock, stop, [&] { return !queue_.empty(); })) {
        const std::function<void()>& work = queue_.front();  // Stays in the queue until it is done.
        lock.unlock();
        work();
        lock.lock();
        queue_.pop_front();
        changed_.notify_all();
      }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::function<void()>> queue_;
    std::jthread thread_{[this](std::stop_token stop) { run(std::move(stop)); }};
  };

  static Stream& of(device::StreamHandle stream) { return *reinterpret_cast<Stream*>(stream); }
  /// Shared with the work that waits for it: an event may be destroyed before.
  static std::shared_ptr<Event>& of(device::EventHandle event) {
    return *reinterpret_cast<std::shared_ptr<Event>*>(event);
  }

  /// \return whether the memory is page-locked.
  bool add_copied(const std::byte* source, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    copied_.insert(source);
    const auto after = locked_.upper_bound(source);
    return after != locked_.begin() &&
           source + bytes <= std::prev(after)->first + std::prev(after)->second;
  }
  void push_copy(std::byte* target, const std::byte* source, std::size_t bytes,
                 device::StreamHandle stream) {
    of(stream).push([this, target, source, bytes] {
      if (before_copies_) before_copies_();
      std::this_thread::sleep_for(copy_takes_.load());
      std::memcpy(target, source, bytes);
      const std::lock_guard lock(mutex_);
      copied_.erase(copied_.find(source));
    });
  }

  void add_locked(const std::byte* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    locked_[memory] = bytes;
    ++live_;
  }
  void remove_locked(const std::byte* memory) noexcept {
    {
      const std::lock_guard lock(mutex_);
      const auto first = copied_.lower_bound(memory);
      if (first != copied_.end() && *first < memory + locked_.at(memory)) ++unlocked_too_early_;
    }
    drain_all();
    const std::lock_guard lock(mutex_);
    locked_.erase(memory);
    --live_;
  }

  void drain_all() noexcept {
    // Without a set of their own: the thread that gives memory back may have none.
    std::array<Stream*, 16> streams{};
    {
      const std::lock_guard lock(mutex_);
      if (streams_.size() > streams.size()) std::abort();
      std::copy(streams_.begin(), streams_.end(), streams.begin());
    }
    for (Stream* const stream : streams) {
      if (stream != nullptr) stream->drain();
    }
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
                  "the fake GPU fails at " + member);
    }
  }
  /// Waiting fails where a device was lost, which does nothing any more.
  void count_synchronize() {
    try {
      count("synchronize");
    } catch (...) {
      drain_all();
      throw;
    }
  }
  void add_live(int n) noexcept {
    const std::lock_guard lock(mutex_);
    live_ += n;
  }

  static void make_batch(const device::NormalizePlan& plan, const device::LabelPlan& labels,
                         const device::BatchWork& work) {
    SampleTwin twin(plan);
    for (std::int64_t i = 0; i < work.num_rows; ++i) {
      const device::RowTask& task = work.tasks[i];
      twin.write(work.images, task, work.boxes, i, work.output);
      device::Tile tile{};
      tile.sample = i;
      tile.row = task.row;
      device::write_labels(labels, tile, work, 0, 1);
    }
  }

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
  std::set<Stream*> streams_;
  std::multiset<const std::byte*> copied_;  // Sources of copies under way.
  int unlocked_too_early_ = 0;
};

}  // namespace chunkio::test
