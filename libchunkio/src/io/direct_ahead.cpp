#include "io/direct_ahead.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/stopwatch.hpp"
#include "base/trace.hpp"

namespace chunkio::io {
namespace {

/// Requests that are under way at the same time: a disk is no faster with more.
constexpr std::size_t kNumThreads = 8;
/// With fewer there is no room for what is read beside what is copied.
constexpr std::int64_t kFewestBlocks = 4;
/// A direct read brings whole blocks of the storage.
constexpr std::int64_t kStride = DirectAhead::kBlockBytes + 2 * kDirectPage;

std::int64_t end_of_block(std::int64_t offset) {
  return (offset / DirectAhead::kBlockBytes + 1) * DirectAhead::kBlockBytes;
}

std::int64_t blocks_in(std::int64_t memory_bytes) {
  std::int64_t blocks = memory_bytes / kStride;
  while (blocks > 0 &&
         std::cmp_greater(base::HostBuffer::footprint(static_cast<std::size_t>(blocks * kStride)),
                          memory_bytes)) {
    --blocks;
  }
  return blocks < kFewestBlocks ? 0 : blocks;
}

}  // namespace

DirectAhead::DirectAhead(std::int64_t memory_bytes) : num_blocks_(blocks_in(memory_bytes)) {}

std::int64_t DirectAhead::memory_bytes() const noexcept {
  if (num_blocks_ == 0) return 0;
  return static_cast<std::int64_t>(
      base::HostBuffer::footprint(static_cast<std::size_t>(num_blocks_ * kStride)));
}

void DirectAhead::prefetch(const Rows& rows, const std::shared_ptr<const RangeReader>& reader,
                           std::span<const ByteRange> ranges) noexcept {
  if (num_blocks_ == 0) return;
  try {
    Blocks blocks;
    for (const ByteRange& range : ranges) {
      for (std::int64_t begin = range.begin; begin < range.end;) {
        const std::int64_t end = std::min(end_of_block(begin), range.end);
        blocks.push_back(std::make_shared<Block>(Block{.reader = reader, .range = {begin, end}}));
        begin = end;
      }
    }
    const std::lock_guard lock(mutex_);
    start();
    const Key key{rows.source, rows.rows.begin, rows.rows.end};
    Prefetched& prefetched = prefetched_[key];
    if (++prefetched.reads == 1) {
      queue_.insert(queue_.end(), blocks.begin(), blocks.end());
      prefetched.blocks = std::move(blocks);
    } else if (prefetched.reads == 0) {
      prefetched_.erase(key);
    }
  } catch (const std::exception&) {
    return;  // the worker that needs the block reads it
  }
  wake_.notify_all();
}

DirectAhead::GroupBlocks DirectAhead::blocks_of(const Rows& rows) {
  if (num_blocks_ == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto entry = prefetched_.try_emplace({rows.source, rows.rows.begin, rows.rows.end}).first;
  Blocks blocks = std::exchange(entry->second.blocks, {});
  if (--entry->second.reads == 0) prefetched_.erase(entry);
  return {*this, std::move(blocks)};
}

void DirectAhead::cancel(const ChunkSource* source) noexcept {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(prefetched_, [&](auto& entry) {
      if (std::get<0>(entry.first) != source) return false;
      for (const auto& block : entry.second.blocks) give_back(*block);
      return true;
    });
  }
  wake_.notify_all();
}

void DirectAhead::start() {
  if (!threads_.empty()) return;
  if (memory_.size() == 0) {
    memory_ = base::HostBuffer(static_cast<std::size_t>(num_blocks_ * kStride));
    free_.reserve(static_cast<std::size_t>(num_blocks_));
    for (std::int64_t i = 0; i < num_blocks_; ++i) free_.push_back(memory_.data() + i * kStride);
  }
  threads_.reserve(kNumThreads);
  while (threads_.size() < kNumThreads) {
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  }
}

void DirectAhead::serve(const std::stop_token& stop) {
  base::name_this_thread("chunkio ahead");
  std::unique_lock lock(mutex_);
  const auto has_work = [this] {
    while (!queue_.empty() && queue_.front()->state == State::gone) queue_.pop_front();
    return !queue_.empty() && !free_.empty();
  };
  while (wake_.wait(lock, stop, has_work) && !stop.stop_requested()) {
    const std::shared_ptr<Block> block = std::move(queue_.front());
    queue_.pop_front();
    block->state = State::reading;
    block->memory = free_.back();
    free_.pop_back();
    lock.unlock();
    std::span<const std::byte> bytes;
    try {
      ReadCost cost;  // charged to the worker that takes the block
      bytes = block->reader->read(block->range.begin, block->range.end - block->range.begin,
                                  {block->memory, static_cast<std::size_t>(kStride)}, cost);
    } catch (const std::exception&) {
      // The worker that needs the block reads it again, and reports the error.
    }
    lock.lock();
    if (block->state == State::reading && !bytes.empty()) {
      block->bytes = bytes;
      block->state = State::ready;
    } else {
      block->state = State::ready;
      give_back(*block);
    }
    arrived_.notify_all();
  }
}

void DirectAhead::give_back(Block& block) noexcept {
  // What is being read is given back by the thread that reads it.
  if (block.state == State::ready) {
    free_.push_back(block.memory);  // has room for all
    wake_.notify_one();
  }
  block.state = State::gone;
}

DirectAhead::GroupBlocks::~GroupBlocks() {
  if (blocks_.empty()) return;
  const std::lock_guard lock(ahead_->mutex_);
  for (; next_ < blocks_.size(); ++next_) ahead_->give_back(*blocks_[next_]);
}

std::span<const std::byte> DirectAhead::GroupBlocks::take(const ByteRange& range, ReadCost& cost) {
  if (next_ == blocks_.size()) return {};
  base::Stopwatch watch;
  std::unique_lock lock(ahead_->mutex_);
  const auto holds = [&](const std::shared_ptr<Block>& block) {
    return block->range.begin <= range.begin && range.end <= block->range.end;
  };
  const auto found =
      std::find_if(blocks_.begin() + static_cast<std::ptrdiff_t>(next_), blocks_.end(), holds);
  if (found == blocks_.end()) return {};
  for (; blocks_.begin() + static_cast<std::ptrdiff_t>(next_) != found; ++next_) {
    ahead_->give_back(*blocks_[next_]);
  }
  Block& block = **found;
  ahead_->arrived_.wait(lock, [&block] { return block.state != State::reading; });
  if (block.state != State::ready) {
    block.state = State::gone;
    return {};
  }
  cost.read_seconds += watch.lap();
  cost.bytes_read += range.end - range.begin;
  return block.bytes.subspan(static_cast<std::size_t>(range.begin - block.range.begin),
                             static_cast<std::size_t>(range.end - range.begin));
}

std::int64_t GroupReader::end_of_piece(const ByteRange& range, std::int64_t step) const noexcept {
  return std::min(range.end, blocks_.empty() ? range.begin + step : end_of_block(range.begin));
}

std::span<const std::byte> GroupReader::read_piece(const ByteRange& piece,
                                                   std::span<std::byte> scratch, ReadCost& cost) {
  const std::span<const std::byte> bytes = blocks_.take(piece, cost);
  return bytes.empty() ? reader_.read(piece.begin, piece.end - piece.begin, scratch, cost) : bytes;
}

std::span<const std::byte> GroupReader::read(const ByteRange& range, std::span<std::byte> scratch,
                                             ReadCost& cost) {
  // Where the reader itself would put the first byte: what it reads lies right there, too.
  const std::int64_t origin = reader_.block_begin(range.begin);
  for (std::int64_t begin = range.begin; begin < range.end;) {
    const std::int64_t end = end_of_piece({begin, range.end}, range.end - range.begin);
    const std::span<const std::byte> taken = blocks_.take({begin, end}, cost);
    if (taken.empty()) {
      reader_.read(begin, end - begin,
                   scratch.subspan(static_cast<std::size_t>(reader_.block_begin(begin) - origin)),
                   cost);
    } else {
      base::Stopwatch watch;
      std::copy(taken.begin(), taken.end(), scratch.begin() + (begin - origin));
      cost.copy_seconds += watch.lap();
    }
    begin = end;
  }
  return scratch.subspan(static_cast<std::size_t>(range.begin - origin),
                         static_cast<std::size_t>(range.end - range.begin));
}

}  // namespace chunkio::io
