/// A GPU that is threads and host memory, for the device loader on machines without one.
///
/// Each stream is a thread that does its work in order, and events make threads wait, so what a
/// program forgets to order is out of order here, too, and ThreadSanitizer sees it.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include <chunkio/error.hpp>

#include "device/normalize_tile.hpp"
#include "support/dense_kernel.hpp"
#include "support/gpu_of_tests.hpp"
#include "support/kernel_cases.hpp"

namespace chunkio::test {
namespace {

class SimulatedGpu final : public GpuOfTests {
 public:
  void run_on(device::StreamHandle stream, std::function<void()> work) override {
    of(stream).push(std::move(work));
  }
  void drain() noexcept override {
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

  std::byte* allocate(std::size_t bytes) override {
    return std::make_unique<std::byte[]>(bytes).release();
  }
  // What gives memory back waits for all work, as with CUDA.
  void free(std::byte* memory) noexcept override {
    drain();
    delete[] memory;
  }
  device::DeviceMemory memory() override { return {}; }
  std::byte* allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  void free_pinned(std::byte* memory) noexcept override { free(memory); }
  void pin(std::span<std::byte> /*memory*/) override {}
  void unpin(std::span<std::byte> /*memory*/) noexcept override { drain(); }

  device::StreamHandle create_stream() override {
    auto stream = std::make_unique<Stream>();
    const std::lock_guard lock(mutex_);
    streams_.insert(stream.get());
    return reinterpret_cast<device::StreamHandle>(stream.release());
  }
  void destroy_stream(device::StreamHandle stream) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      streams_.erase(&of(stream));
    }
    delete &of(stream);
  }
  device::EventHandle create_event(device::EventUse use) override {
    return reinterpret_cast<device::EventHandle>(
        new std::shared_ptr<Event>(std::make_shared<Event>(use)));
  }
  void destroy_event(device::EventHandle event) noexcept override { delete &of(event); }

  void record(device::EventHandle handle, device::StreamHandle stream) override {
    // If this throws, nothing is recorded, and who waits for the record before goes on waiting.
    const std::int64_t ticket = of(handle)->last() + 1;
    of(stream).push([event = of(handle), ticket] { event->finish(ticket); });
    of(handle)->issue();
  }
  void wait(device::StreamHandle stream, device::EventHandle handle) override {
    const std::int64_t ticket = of(handle)->last();
    of(stream).push([event = of(handle), ticket] { event->wait(ticket); });
  }
  bool is_done(device::EventHandle event) override { return of(event)->is_done(); }
  void synchronize(device::EventHandle handle) override {
    if (of(handle)->use() != device::EventUse::waited_timer) {
      throw Error(ErrorCode::cuda_failed, "who waits for this event does not sleep");
    }
    of(handle)->wait(of(handle)->last());
  }
  void synchronize(device::StreamHandle stream) override { of(stream).drain(); }
  std::optional<double> seconds_between(device::EventHandle begin,
                                        device::EventHandle end) override {
    const auto from = of(begin)->done_at();
    const auto to = of(end)->done_at();
    if (!from || !to) return std::nullopt;
    return std::chrono::duration<double>(*to - *from).count();
  }

  void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                      device::StreamHandle stream) override {
    of(stream).push([target, source, bytes] { std::memcpy(target, source, bytes); });
  }
  void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
             device::StreamHandle stream) override {
    copy_to_device(target, source, bytes, stream);
  }
  void clear(std::byte* memory, std::size_t bytes, device::StreamHandle stream) override {
    of(stream).push([memory, bytes] { std::memset(memory, 0, bytes); });
  }
  void require_supported(const device::NormalizePlan& /*plan*/) override {}
  void normalize(const device::NormalizePlan& plan, const device::LabelPlan& labels,
                 const device::BatchWork& work, device::StreamHandle stream) override {
    of(stream).push([plan, labels, work] { make_batch(plan, labels, work); });
  }
  void densify(const device::DensePlan& plan, const device::LabelPlan& labels,
               const device::DenseWork& work, device::StreamHandle stream) override {
    of(stream).push([plan, labels, work] { run_dense_kernels(plan, labels, work); });
  }
  void gather(const device::GatherWork& work, device::StreamHandle stream) override {
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
    void issue() {
      const std::lock_guard lock(mutex_);
      ++issued_;
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
      done_ = std::max(done_, ticket);  // that of another stream may come later
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

  std::mutex mutex_;  // Guards what follows.
  std::set<Stream*> streams_;
};

}  // namespace

std::unique_ptr<GpuOfTests> make_gpu_of_tests() { return std::make_unique<SimulatedGpu>(); }

}  // namespace chunkio::test
