/// Copies of an epoch's rows between buffers in memory: what no loader can beat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/loader.hpp>

namespace bench {

/// One visit of a row group: which rows go to which places of the epoch.
struct Move {
  std::int64_t row = 0;
  std::int64_t position = 0;
};
struct Visit {
  std::size_t window = 0;
  std::vector<Move> moves;  // ascending by row
};
struct CopyPlan {
  std::vector<Visit> visits;
  std::vector<std::int64_t> visits_of_window;
};

/// Recovers from the delivered order what the loader did: windows of `window_groups` row groups,
/// their rows mixed. A window ends where as many groups have been met and delivered whole.
CopyPlan plan_copies(const chunkio::Loader& loader, std::span<const std::int64_t> order);

using Copy = void (*)(std::byte* target, const std::byte* source, std::size_t size) noexcept;
void plain_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept;

/// Copies an epoch's rows to the ring with `threads` threads. As in a loader, a window waits until
/// the one before the last is complete: its places are in use until then.
void copy_rows(const CopyPlan& plan, std::span<const std::byte> pixels, std::span<std::byte> ring,
               std::size_t sample_bytes, std::int64_t threads, Copy copy);

/// Rows that a baseline left in the ring must be the last that were delivered to their places.
/// Clears the ring for the next.
/// \throws std::runtime_error.
void check_ring(const char* what, std::span<const std::int64_t> order,
                std::span<const std::byte> pixels, std::span<std::byte> ring,
                std::size_t sample_bytes);

}  // namespace bench
