/// A loop over several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stop_token>

#include "base/run_on_threads.hpp"

namespace bench {

/// Gives each of `threads` threads a worker of its own, `make_worker()`, which is called with every
/// i below `count` that the thread takes; `at_once` at a time, in order.
/// \throws what the first worker threw.
template <class MakeWorker>
void in_parallel(std::int64_t count, std::int64_t threads, MakeWorker make_worker,
                 std::int64_t at_once = 32) {
  std::atomic<std::int64_t> next = 0;
  chunkio::base::run_on_threads(threads, [&](std::int64_t, const std::stop_token& stop) {
    auto worker = make_worker();
    for (std::int64_t i = next.fetch_add(at_once); i < count && !stop.stop_requested();
         i = next.fetch_add(at_once)) {
      for (std::int64_t k = i; k < std::min(i + at_once, count); ++k) worker(k);
    }
  });
}

}  // namespace bench
