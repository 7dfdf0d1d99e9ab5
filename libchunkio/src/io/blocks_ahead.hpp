/// Reads ahead of the workers where nobody else does: where reads bypass the page cache, and where
/// they ask a server.
///
/// The kernel reads nothing ahead for O_DIRECT, and a worker that reads and then copies leaves the
/// disk idle while it copies; a server answers after a while, and takes many questions at a time.
/// So a few threads read what is prefetched, in blocks and in that order, into a fixed amount of
/// memory. A worker takes the blocks that are read or being read, and reads the others itself: it
/// never waits for a block that is not begun, so there is no deadlock however little memory there
/// is.
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
#include "io/usual_time.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::io {

/// Of a disk by default, which is no faster with more requests.
struct AheadShape {
  std::int64_t block_bytes = std::int64_t{1} << 20;
  std::size_t requests = 8;  ///< That are under way at the same time; threads.
  bool at_multiples = true;  ///< No block crosses a multiple of block_bytes.
  /// Whether a worker that waits for a block much longer than they take reads it itself: where a
  /// second request may be faster than the first.
  bool impatient = false;
};

/// Thread-safe. Its threads and its memory come with the first prefetch, and go with it.
class BlocksAhead {
 public:
  /// \param memory_bytes  of the memory that it may take; too little for a few blocks: it reads
  ///                      nothing ahead.
  explicit BlocksAhead(std::int64_t memory_bytes, const AheadShape& shape = {});
  BlocksAhead(const BlocksAhead&) = delete;
  BlocksAhead& operator=(const BlocksAhead&) = delete;

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

  [[nodiscard]] std::int64_t stride() const noexcept;
  [[nodiscard]] std::int64_t blocks_in(std::int64_t memory_bytes) const;
  [[nodiscard]] std::int64_t end_of_block(std::int64_t begin) const noexcept;
  void start();
  void serve(const std::stop_token& stop);
  // With the mutex held.
  /// Waits until the block is read, or for longer than that should take. \returns whether it is.
  bool wait_for(const Block& block, std::unique_lock<std::mutex>& lock);
  void give_back(Block& block) noexcept;

  const AheadShape shape_;
  const std::int64_t num_blocks_;
  std::mutex mutex_;
  std::condition_variable_any wake_;  // of threads: a block is queued, or memory is free
  std::condition_variable arrived_;   // of readers: a block is no longer being read
  std::deque<std::shared_ptr<Block>> queue_;
  base::HostBuffer memory_;
  std::vector<std::byte*> free_;
  UsualTime block_time_;               // that reading one takes
  std::vector<std::jthread> threads_;  // last: joined before anything they use is gone
};

/// A source whose prefetched ranges are read ahead.
class ReadAheadSource final : public WrappingSource {
 public:
  ReadAheadSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<BlocksAhead> ahead)
      : WrappingSource(std::move(source)), ahead_(std::move(ahead)) {}

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override {
    return ahead_->prefetch(source(), ranges);
  }

 private:
  std::shared_ptr<BlocksAhead> ahead_;
};

}  // namespace chunkio::io
