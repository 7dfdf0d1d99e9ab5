/// Runs a piece of work on several threads, once.
///
/// For work that takes milliseconds or more: the threads end with it. The work itself says what
/// each thread does, as a rule by taking one item after the other from a counter that all share.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

namespace chunkio::base {

/// Calls `work(thread, stop)` for thread = 0 ... num_threads - 1, each on a thread of its own, the
/// caller's being the first; fewer where the process may start no more. Returns when all have
/// returned.
/// \param work  called from several threads at once; `stop` is requested once one of them has
///              thrown.
/// \throws what one of them threw first.
void run_on_threads(std::int64_t num_threads,
                    const std::function<void(std::int64_t, const std::stop_token&)>& work);

}  // namespace chunkio::base
