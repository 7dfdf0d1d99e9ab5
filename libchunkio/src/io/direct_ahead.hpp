/// Reads ahead of the workers where reads bypass the page cache.
///
/// The kernel reads nothing ahead for O_DIRECT, and a worker that reads and then copies leaves the
/// disk idle while it copies. So a few threads read what is prefetched, in blocks and in that
/// order, into a fixed amount of memory. A worker takes the blocks that are read or being read, and
/// reads the others itself: it never waits for a block that is not begun, so there is no deadlock
/// however little memory there is.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <chunkio/byte_source.hpp>

#include "base/host_memory.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::io {

/// Thread-safe. Its threads and its memory come with the first prefetch, and go with it.
class DirectAhead {
 public:
  /// No block crosses a multiple of this.
  static constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

  /// \param memory_bytes  of the memory that it may take; too little for a few blocks: it reads
  ///                      nothing ahead.
  explicit DirectAhead(std::int64_t memory_bytes);
  DirectAhead(const DirectAhead&) = delete;
  DirectAhead& operator=(const DirectAhead&) = delete;

  /// Memory that it takes.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

  /// Starts reading `ranges` and does not wait. This outlives what is returned, through which one
  /// thread reads them in ascending order: blocks are given back as they are passed, and with it.
  /// \returns null if there is no memory.
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::shared_ptr<const ByteSource> source, std::span<const ByteRange> ranges) noexcept;

 private:
  class Prefetched;
  enum class State { queued, reading, ready, gone };
  struct Block {
    std::shared_ptr<const ByteSource> source;
    ByteRange range = {};
    // Guarded by mutex_.
    State state = State::queued;
    std::byte* memory = nullptr;
  };
  using Blocks = std::vector<std::shared_ptr<Block>>;

  void start();
  void serve(const std::stop_token& stop);
  // With the mutex held.
  void give_back(Block& block) noexcept;

  const std::int64_t num_blocks_;
  std::mutex mutex_;
  std::condition_variable_any wake_;  // of threads: a block is queued, or memory is free
  std::condition_variable arrived_;   // of readers: a block is no longer being read
  std::deque<std::shared_ptr<Block>> queue_;
  base::HostBuffer memory_;
  std::vector<std::byte*> free_;
  std::vector<std::jthread> threads_;  // last: joined before anything they use is gone
};

/// A source whose prefetched ranges are read ahead.
class ReadAheadSource final : public WrappingSource {
 public:
  ReadAheadSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<DirectAhead> ahead)
      : WrappingSource(std::move(source)), ahead_(std::move(ahead)) {}

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override {
    return ahead_->prefetch(source(), ranges);
  }

 private:
  std::shared_ptr<DirectAhead> ahead_;
};

}  // namespace chunkio::io
