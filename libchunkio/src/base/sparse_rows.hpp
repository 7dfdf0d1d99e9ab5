/// Rows of a CSR matrix on their way from a source to a batch.
///
/// Rows differ in length, so a batch's memory is laid out when all its rows are there. Until then a
/// slot of the ring has a reference for each row, of one size, to where its row group was read to;
/// so the order, flow control, lanes and skipping are those of rows of one length. Blocks end with
/// the last of their rows, unless they are to stay (Resident::host).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/host_memory.hpp"

namespace chunkio::base {

/// What the wanted rows of a row group were read to.
struct SparseBlock {
  HostBuffer memory;
  std::atomic<std::int64_t> rows = 0;  ///< That are still to be taken.
  std::size_t index = 0;               ///< Among the blocks in use; of SparseBlocks.
};

/// What a slot has of each row until its batch is made. \pre zeroed or written by a source.
struct SparseRow {
  const std::byte* values = nullptr;
  const std::byte* indices = nullptr;
  std::int64_t count = 0;        ///< Values.
  SparseBlock* block = nullptr;  ///< Null: the row was never read.
};

/// The blocks of one loader. Thread-safe.
class SparseBlocks {
 public:
  /// \param bytes  that all blocks take, those included that are kept for later.
  /// To be called before the first take(): without it, nothing is kept.
  void limit(std::int64_t bytes) noexcept { limit_ = static_cast<std::size_t>(bytes); }
  /// Blocks stay for as long as this does, whatever is taken of them. To be called before the first
  /// take().
  void stay() noexcept { stay_ = true; }

  /// A block of at least `bytes`, for `rows` rows. \throws Error out_of_resources.
  [[nodiscard]] SparseBlock& take(std::size_t bytes, std::int64_t rows) {
    const std::lock_guard lock(mutex_);
    // So that giving back cannot fail.
    const std::size_t blocks = spare_.size() + used_.size() + 1;
    if (spare_.capacity() < blocks) spare_.reserve(2 * blocks);
    if (used_.capacity() < blocks) used_.reserve(2 * blocks);
    const auto found = std::find_if(spare_.begin(), spare_.end(), [&](const auto& spare) {
      return bytes <= spare->memory.size() && spare->memory.size() <= bytes + slack(bytes);
    });
    if (found != spare_.end()) {
      used_.push_back(std::move(*found));
      spare_.erase(found);
    } else {
      while (!spare_.empty() && bytes_ + HostBuffer::footprint(bytes) > limit_) {
        bytes_ -= footprint(*spare_.back());
        spare_.pop_back();
      }
      auto block = std::make_unique<SparseBlock>();
      block->memory = HostBuffer(bytes);
      bytes_ += footprint(*block);
      used_.push_back(std::move(block));
    }
    used_.back()->index = used_.size() - 1;
    used_.back()->rows.store(rows, std::memory_order_relaxed);
    return *used_.back();
  }

  /// `rows` of the block were taken.
  void release(SparseBlock& block, std::int64_t rows) noexcept {
    if (stay_ || block.rows.fetch_sub(rows, std::memory_order_acq_rel) > rows) return;
    give_back(block);
  }

  /// No row of the block will be taken. \pre none was.
  void give_back(SparseBlock& block) noexcept {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<SparseBlock>& place = used_[block.index];
    std::swap(place, used_.back());
    place->index = block.index;
    keep(std::move(used_.back()));
    used_.pop_back();
  }

  /// All rows that were not taken are given up. \pre nobody reads or writes blocks.
  void release_all() noexcept {
    if (stay_) return;
    const std::lock_guard lock(mutex_);
    for (auto& used : used_) keep(std::move(used));
    used_.clear();
  }

  /// A block may be so much larger than what was asked for.
  [[nodiscard]] static std::size_t slack(std::size_t bytes) noexcept { return bytes / 4; }

 private:
  [[nodiscard]] static std::size_t footprint(const SparseBlock& block) noexcept {
    return HostBuffer::footprint(block.memory.size());
  }
  void keep(std::unique_ptr<SparseBlock> block) noexcept {
    if (bytes_ <= limit_) {
      spare_.push_back(std::move(block));
    } else {
      bytes_ -= footprint(*block);
    }
  }

  std::size_t limit_ = 0;
  bool stay_ = false;

  std::mutex mutex_;  // guards what follows
  std::size_t bytes_ = 0;
  std::vector<std::unique_ptr<SparseBlock>> spare_;
  std::vector<std::unique_ptr<SparseBlock>> used_;
};

}  // namespace chunkio::base
