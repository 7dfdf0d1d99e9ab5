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
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <tuple>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/chunk_source.hpp"
#include "base/host_memory.hpp"
#include "io/range_reader.hpp"

namespace chunkio::io {

/// Bytes [begin, end) of a file.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Thread-safe. Its threads and its memory come with the first prefetch, and go with it.
class DirectAhead {
  struct Block;
  using Blocks = std::vector<std::shared_ptr<Block>>;

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

  /// The blocks of one group read; they are given back as they are passed, and with it. For one
  /// thread.
  class GroupBlocks {
   public:
    GroupBlocks() = default;
    GroupBlocks(GroupBlocks&& other) noexcept = default;
    GroupBlocks& operator=(GroupBlocks&& other) = delete;
    ~GroupBlocks();

    /// Whether anything was prefetched for it.
    [[nodiscard]] bool empty() const noexcept { return blocks_.empty(); }
    /// Bytes that lie between two multiples of kBlockBytes, ascending from call to call; waits
    /// while they are being read, and adds that to `cost`.
    /// \returns nothing if they have to be read by the caller. Valid until the next call.
    [[nodiscard]] std::span<const std::byte> take(const ByteRange& range, ReadCost& cost);

   private:
    friend class DirectAhead;
    GroupBlocks(DirectAhead& ahead, Blocks blocks) : ahead_(&ahead), blocks_(std::move(blocks)) {}

    DirectAhead* ahead_ = nullptr;
    Blocks blocks_;
    std::size_t next_ = 0;  // those before were given back
  };

  /// Rows of an array of `reader`'s file, which stays until it was read or cancelled.
  struct Rows {
    const ChunkSource* source = nullptr;
    RowRange rows = {};
  };

  /// Starts reading `ranges`, which hold the rows, and does not wait. Advice: never fails.
  void prefetch(const Rows& rows, const std::shared_ptr<const RangeReader>& reader,
                std::span<const ByteRange> ranges) noexcept;
  /// Of a prefetched group read, which may come before its prefetch: that is ignored then.
  [[nodiscard]] GroupBlocks blocks_of(const Rows& rows);
  /// The prefetches of `source` come to nothing. Not while one of its calls runs.
  void cancel(const ChunkSource* source) noexcept;

 private:
  enum class State { queued, reading, ready, gone };
  struct Block {
    std::shared_ptr<const RangeReader> reader;
    ByteRange range = {};
    // Guarded by mutex_.
    State state = State::queued;
    std::byte* memory = nullptr;
    std::span<const std::byte> bytes = {};
  };
  struct Prefetched {
    std::int64_t reads = 0;  ///< To come; negative: came before their prefetch.
    Blocks blocks = {};      ///< For the first of them.
  };
  using Key = std::tuple<const ChunkSource*, std::int64_t, std::int64_t>;

  void start();
  void serve(const std::stop_token& stop);
  // With the mutex held.
  void give_back(Block& block) noexcept;

  const std::int64_t num_blocks_;
  std::mutex mutex_;
  std::condition_variable_any wake_;  // of threads: a block is queued, or memory is free
  std::condition_variable arrived_;   // of group reads: a block is no longer being read
  std::map<Key, Prefetched> prefetched_;
  std::deque<std::shared_ptr<Block>> queue_;
  base::HostBuffer memory_;
  std::vector<std::byte*> free_;
  std::vector<std::jthread> threads_;  // last: joined before anything they use is gone
};

/// Reads the bytes of one group read: those that were read ahead are taken, others are read now.
class GroupReader {
 public:
  /// Nothing was read ahead. \param reader  outlives this.
  explicit GroupReader(const RangeReader& reader) : reader_(reader) {}
  GroupReader(const RangeReader& reader, DirectAhead::GroupBlocks blocks)
      : reader_(reader), blocks_(std::move(blocks)) {}

  [[nodiscard]] const RangeReader& file() const noexcept { return reader_; }
  /// End of the piece to read first of `range`.
  /// \param step  bytes to read at a time where nothing was read ahead.
  [[nodiscard]] std::int64_t end_of_piece(const ByteRange& range, std::int64_t step) const noexcept;
  /// A piece as end_of_piece() says. As RangeReader::read().
  [[nodiscard]] std::span<const std::byte> read_piece(const ByteRange& piece,
                                                      std::span<std::byte> scratch, ReadCost& cost);
  /// Any bytes. As RangeReader::read().
  [[nodiscard]] std::span<const std::byte> read(const ByteRange& range,
                                                std::span<std::byte> scratch, ReadCost& cost);

 private:
  const RangeReader& reader_;
  DirectAhead::GroupBlocks blocks_;
};

}  // namespace chunkio::io
