/// The worker threads of a WindowReader, and how many of them are at work outside of its mutex.
///
/// Workers sleep in a wait that ends only when somebody notifies it, so whatever ends the reader
/// (its constructor may fail with some of them started) has to wake them before they are joined.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "read/ring.hpp"

namespace chunkio::read {

class ReaderThreads {
 public:
  explicit ReaderThreads(Ring& ring) noexcept : ring_(ring) {}
  ReaderThreads(const ReaderThreads&) = delete;
  ReaderThreads& operator=(const ReaderThreads&) = delete;
  ~ReaderThreads() { stop(); }

  /// Each thread calls `work`, which returns once its token is stopped.
  /// \throws Error out_of_resources if a thread cannot be started, std::bad_alloc.
  void start(std::int64_t count, const std::function<void(std::stop_token)>& work);
  /// Stops, wakes and joins. Without the mutex.
  void stop() noexcept;

  // With the mutex of the ring, held by `lock`.
  /// Runs `work` without it. \pre `work` does not throw.
  template <class Work>
  void run_unlocked(std::unique_lock<std::mutex>& lock, Work work) {
    ++num_working_;
    lock.unlock();
    work();
    lock.lock();
    if (--num_working_ == 0) quiet_.notify_all();
  }
  /// Waits until no thread is inside run_unlocked(). Others have to see that nothing new begins.
  void wait_until_quiet(std::unique_lock<std::mutex>& lock) {
    quiet_.wait(lock, [this] { return num_working_ == 0; });
  }

 private:
  Ring& ring_;
  // Guarded by Ring::mutex().
  std::condition_variable quiet_;  // num_working_ fell to 0
  std::int64_t num_working_ = 0;

  std::vector<std::jthread> threads_;
};

}  // namespace chunkio::read
