/// Rows of a CSR matrix on their way from a source to a batch.
///
/// Rows differ in length, so a batch's memory is laid out when all its rows are there. Until then a
/// slot of the ring has a reference for each row, of one size, to where its row group was read to;
/// so the order, flow control, lanes and skipping are those of rows of one length. Blocks end with
/// the last of their rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/host_memory.hpp"

namespace chunkio::base {

/// What a row group, or a part of it, was read to.
struct SparseBlock {
  HostBuffer memory;
  std::atomic<std::int64_t> rows = 0;  ///< That are still to be taken.
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
  /// A block of at least `bytes`, for `rows` rows. \throws Error out_of_resources.
  [[nodiscard]] SparseBlock& take(std::size_t bytes, std::int64_t rows) {
    std::unique_ptr<SparseBlock> block;
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        block = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!block) block = std::make_unique<SparseBlock>();
    if (block->memory.size() < bytes) {
      block->memory = {};  // first, so that both never exist
      block->memory = HostBuffer(bytes);
    }
    block->rows.store(rows, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    spare_.reserve(spare_.size() + used_.size() + 1);  // so that giving back cannot fail
    used_.push_back(std::move(block));
    return *used_.back();
  }

  /// `rows` of the block were taken.
  void release(SparseBlock& block, std::int64_t rows) noexcept {
    if (block.rows.fetch_sub(rows, std::memory_order_acq_rel) > rows) return;
    const std::lock_guard lock(mutex_);
    for (auto& used : used_) {
      if (used.get() != &block) continue;
      std::swap(used, used_.back());
      keep(std::move(used_.back()));
      used_.pop_back();
      return;
    }
  }

  /// All rows that were not taken are given up. \pre nobody reads or writes blocks.
  void release_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& used : used_) keep(std::move(used));
    used_.clear();
  }

 private:
  /// Keeps few, so that a large block is not kept for small groups for ever.
  void keep(std::unique_ptr<SparseBlock> block) noexcept {
    constexpr std::size_t kSpare = 8;
    if (spare_.size() < kSpare) spare_.push_back(std::move(block));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<SparseBlock>> spare_;
  std::vector<std::unique_ptr<SparseBlock>> used_;
};

}  // namespace chunkio::base
