/// Threads that wait to share a piece of work.
///
/// Unlike base::run_on_threads() they stay between two pieces: normalizing a batch takes less time
/// than starting threads for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace chunkio::device {

/// The thread that calls run() takes part. Thread-safe: one piece of work after the other.
class ThreadTeam {
 public:
  /// \param num_threads  >= 1, the caller of run() among them.
  /// \throws Error out_of_resources.
  explicit ThreadTeam(std::int64_t num_threads);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  /// \param thread  0 to num_threads - 1; at one time, one call has it.
  using Work = std::function<void(std::int64_t i, std::int64_t thread)>;
  /// Calls `work(i, thread)` for i = 0 ... count - 1, each once, in any order and on any of the
  /// threads. Returns when all have returned, or throws the first of what they threw.
  void run(std::int64_t count, const Work& work);

 private:
  void serve(std::stop_token stop, std::int64_t thread);
  void take_part(std::unique_lock<std::mutex>& lock, std::int64_t thread);

  std::mutex turn_;  // Held by the caller of run().

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable_any work_available_;
  std::condition_variable work_done_;
  const Work* work_ = nullptr;
  std::int64_t next_ = 0;
  std::int64_t count_ = 0;
  std::int64_t num_done_ = 0;
  std::exception_ptr error_;

  std::vector<std::jthread> threads_;
};

/// How many threads `num_threads` means: 0 the CPUs of this process, as base::default_threads() has
/// it. \throws Error invalid_argument unless it is 0 to 1024.
[[nodiscard]] std::int64_t checked_threads(std::int64_t num_threads);

}  // namespace chunkio::device
