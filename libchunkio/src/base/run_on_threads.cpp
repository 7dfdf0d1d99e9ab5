#include "base/run_on_threads.hpp"

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace chunkio::base {

void run_on_threads(std::int64_t num_threads,
                    const std::function<void(std::int64_t, const std::stop_token&)>& work) {
  std::stop_source stop;
  std::mutex mutex;  // guards `error`
  std::exception_ptr error;
  const auto run = [&](std::int64_t thread) noexcept {
    try {
      work(thread, stop.get_token());
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      stop.request_stop();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < num_threads; ++i) helpers.emplace_back([&run, i] { run(i); });
    } catch (const std::system_error&) {
      // A process that may start no more threads does with those it has.
    }
    run(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace chunkio::base
