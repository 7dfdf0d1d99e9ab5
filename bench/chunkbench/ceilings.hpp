/// What no cell can beat, measured in the same run: the disk, and the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/host_memory.hpp"
#include "chunkbench/trial.hpp"

namespace bench {

inline constexpr const char* kStorageCeiling = "storage, large reads";

/// The disk alone, in bytes a second: large reads one after the other by several threads, with
/// nothing of the file in the page cache and going round it (O_DIRECT) where the file system lets
/// them. Blocks for a second or two at most, and leaves the file out of the page cache: a warm
/// trial reads what it misses itself.
/// \param file  one with large chunks: closest to a plain file.
/// \param threads  at least four are used.
/// \returns nothing if the file could be read from the page cache only.
[[nodiscard]] std::optional<double> measure_storage(const ChunkFile& file, std::int64_t threads,
                                                    const TrialSettings& settings);

/// The memory alone: non-temporal copies of rows, in the order of a shuffled epoch, between two
/// buffers on huge pages.
class MemoryCeiling {
 public:
  static constexpr const char* kName = "memory, copy of the same rows";

  /// \param memory  bytes that there are at all; the two buffers take at most a quarter of them.
  MemoryCeiling(std::int64_t sample_bytes, std::int64_t threads, std::uint64_t seed,
                std::int64_t memory);

  /// Bytes copied a second, counted once.
  [[nodiscard]] double measure() const;

 private:
  std::size_t sample_bytes_;
  std::int64_t threads_;
  chunkio::base::HostBuffer from_;
  chunkio::base::HostBuffer to_;
  std::vector<std::int64_t> order_;
};

}  // namespace bench
