#include "device/thread_team.hpp"

#include <string>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "base/cpus.hpp"
#include "base/require.hpp"
#include "base/trace.hpp"

namespace chunkio::device {

ThreadTeam::ThreadTeam(std::int64_t num_threads) {
  try {
    for (std::int64_t i = 1; i < num_threads; ++i) {
      threads_.emplace_back([this, i](std::stop_token stop) { serve(std::move(stop), i); });
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::out_of_resources, "cannot start " + std::to_string(num_threads) +
                                                 " threads: " + error.what() +
                                                 "; ask for fewer with num_threads");
  }
}

ThreadTeam::~ThreadTeam() = default;

void ThreadTeam::run(std::int64_t count, const Work& work) {
  const std::lock_guard turn(turn_);
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  count_ = count;
  num_done_ = 0;
  if (count > 1) work_available_.notify_all();
  take_part(lock, 0);
  work_done_.wait(lock, [&] { return num_done_ == count_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::serve(std::stop_token stop, std::int64_t thread) {
  base::name_this_thread("chunkio team");
  std::unique_lock lock(mutex_);
  while (work_available_.wait(lock, stop, [&] { return next_ < count_; })) take_part(lock, thread);
}

void ThreadTeam::take_part(std::unique_lock<std::mutex>& lock, std::int64_t thread) {
  const base::TraceRange range(base::Stage::normalize);
  while (next_ < count_) {
    const std::int64_t i = next_++;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*work_)(i, thread);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (++num_done_ == count_) work_done_.notify_one();
  }
}

std::int64_t checked_threads(std::int64_t num_threads) {
  constexpr std::int64_t kMaxThreads = 1024;
  base::require(num_threads >= 0 && num_threads <= kMaxThreads,
                "num_threads must be between 0 and 1024, got " + std::to_string(num_threads));
  return num_threads == 0 ? base::default_threads() : num_threads;
}

}  // namespace chunkio::device
