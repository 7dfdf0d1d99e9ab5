/// A loop over several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

/// Gives each of `threads` threads a worker of its own, `make_worker()`, which is called with every
/// i below `count` that the thread takes; several at a time, in order.
/// \throws what the first worker threw.
template <class MakeWorker>
void in_parallel(std::int64_t count, std::int64_t threads, MakeWorker make_worker) {
  constexpr std::int64_t kAtOnce = 32;
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> running;
    for (std::int64_t t = 0; t < threads; ++t) {
      running.emplace_back([&] {
        try {
          auto worker = make_worker();
          for (std::int64_t i = next.fetch_add(kAtOnce); i < count; i = next.fetch_add(kAtOnce)) {
            for (std::int64_t k = i; k < std::min(i + kAtOnce, count); ++k) worker(k);
          }
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
          next = count;
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bench
