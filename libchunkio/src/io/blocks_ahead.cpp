#include "io/blocks_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "base/stopwatch.hpp"
#include "base/trace.hpp"
#include "io/direct_file.hpp"

namespace chunkio::io {
namespace {

/// With fewer there is no room for what is read beside what is copied.
constexpr std::int64_t kFewestBlocks = 4;
/// How long a worker waits for a block at least, and how many times as long as blocks take.
constexpr double kPatienceSeconds = 0.25;
constexpr double kPatience = 4;

}  // namespace

/// The blocks of some ranges, for the thread that reads them.
class BlocksAhead::Prefetched final : public WrappingSource {
 public:
  Prefetched(BlocksAhead& ahead, std::shared_ptr<const ByteSource> source, Blocks blocks)
      : WrappingSource(std::move(source)), ahead_(ahead), blocks_(std::move(blocks)) {}
  ~Prefetched() override {
    const std::lock_guard lock(ahead_.mutex_);
    for (; next_ < blocks_.size(); ++next_) ahead_.give_back(*blocks_[next_]);
  }
  Prefetched(const Prefetched&) = delete;
  Prefetched& operator=(const Prefetched&) = delete;

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    ReadTime time;
    while (!out.empty()) {
      const Block* const block = arrived(offset, time);
      // Between blocks, and where a read ahead failed, the source says what is the matter.
      const std::int64_t end = block != nullptr ? block->range.end : next_begin(offset);
      const auto part = out.first(
          static_cast<std::size_t>(std::min(static_cast<std::int64_t>(out.size()), end - offset)));
      if (block != nullptr) {
        base::Stopwatch watch;
        std::memcpy(part.data(), block->memory + (offset - block->range.begin), part.size());
        time.copied_seconds += watch.lap();
      } else {
        time += source()->read_at(offset, part, stop);
      }
      offset += static_cast<std::int64_t>(part.size());
      out = out.subspan(part.size());
    }
    return time;
  }
  /// Bytes are in memory already.
  [[nodiscard]] std::int64_t request_bytes() const noexcept override {
    return ByteSource::request_bytes();
  }

 private:
  /// The block that holds the byte at `offset`, once it is read; null if there is none. Those
  /// before it are given back.
  [[nodiscard]] const Block* arrived(std::int64_t offset, ReadTime& time) const {
    base::Stopwatch watch;
    std::unique_lock lock(ahead_.mutex_);
    while (next_ < blocks_.size() && blocks_[next_]->range.end <= offset) {
      ahead_.give_back(*blocks_[next_++]);
    }
    if (next_ == blocks_.size() || blocks_[next_]->range.begin > offset) return nullptr;
    Block& block = *blocks_[next_];
    const bool is_read = ahead_.wait_for(block, lock);
    time.waited_seconds += watch.lap();
    if (is_read) return &block;
    block.state = State::gone;
    return nullptr;
  }
  /// Where the next block begins that may be read ahead.
  [[nodiscard]] std::int64_t next_begin(std::int64_t offset) const noexcept {
    for (std::size_t i = next_; i < blocks_.size(); ++i) {
      if (blocks_[i]->range.begin > offset) return blocks_[i]->range.begin;
    }
    return size();
  }

  BlocksAhead& ahead_;
  Blocks blocks_;                 // ascending
  mutable std::size_t next_ = 0;  // those before were given back
};

BlocksAhead::BlocksAhead(std::int64_t memory_bytes, const AheadShape& shape)
    : shape_(shape), num_blocks_(blocks_in(memory_bytes)) {}

/// A direct read brings whole blocks of the storage.
std::int64_t BlocksAhead::stride() const noexcept { return shape_.block_bytes + 2 * kDirectPage; }

std::int64_t BlocksAhead::blocks_in(std::int64_t memory_bytes) const {
  std::int64_t blocks = memory_bytes / stride();
  while (blocks > 0 &&
         std::cmp_greater(base::HostBuffer::footprint(static_cast<std::size_t>(blocks * stride())),
                          memory_bytes)) {
    --blocks;
  }
  return blocks < kFewestBlocks ? 0 : blocks;
}

std::int64_t BlocksAhead::end_of_block(std::int64_t begin) const noexcept {
  if (!shape_.at_multiples) return begin + shape_.block_bytes;
  return (begin / shape_.block_bytes + 1) * shape_.block_bytes;
}

bool BlocksAhead::wait_for(const Block& block, std::unique_lock<std::mutex>& lock) {
  const auto is_read = [&block] { return block.state != State::reading; };
  if (shape_.impatient) {
    const double patience = std::max(kPatienceSeconds, kPatience * block_time_.seconds());
    arrived_.wait_for(lock, std::chrono::duration<double>(patience), is_read);
  } else {
    arrived_.wait(lock, is_read);
  }
  return block.state == State::ready;
}

std::int64_t BlocksAhead::memory_bytes() const noexcept {
  if (num_blocks_ == 0) return 0;
  return static_cast<std::int64_t>(
      base::HostBuffer::footprint(static_cast<std::size_t>(num_blocks_ * stride())));
}

std::unique_ptr<const ByteSource> BlocksAhead::prefetch(std::shared_ptr<const ByteSource> source,
                                                        std::span<const ByteRange> ranges) noexcept
    try {
  if (num_blocks_ == 0) return nullptr;
  const std::int64_t align = source->block_bytes();
  Blocks blocks;
  for (const ByteRange& range : ranges) {
    const std::int64_t range_end =
        std::min((range.end + align - 1) / align * align, std::max(range.end, source->size()));
    for (std::int64_t begin = range.begin / align * align; begin < range_end;) {
      const std::int64_t end = std::min(end_of_block(begin), range_end);
      blocks.push_back(std::make_shared<Block>(Block{.source = source, .range = {begin, end}}));
      begin = end;
    }
  }
  auto prefetched = std::make_unique<const Prefetched>(*this, std::move(source), blocks);
  {
    const std::lock_guard lock(mutex_);
    start();
    queue_.insert(queue_.end(), blocks.begin(), blocks.end());
  }
  wake_.notify_all();
  return prefetched;
} catch (const std::exception&) {
  return nullptr;  // the worker that needs the bytes reads them
}

void BlocksAhead::start() {
  if (!threads_.empty()) return;
  if (memory_.size() == 0) {
    memory_ = base::HostBuffer(static_cast<std::size_t>(num_blocks_ * stride()));
    free_.reserve(static_cast<std::size_t>(num_blocks_));
    for (std::int64_t i = 0; i < num_blocks_; ++i) free_.push_back(memory_.data() + i * stride());
  }
  threads_.reserve(shape_.requests);
  while (threads_.size() < shape_.requests) {
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  }
}

void BlocksAhead::serve(const std::stop_token& stop) {
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
    bool read = true;
    base::Stopwatch watch;
    try {
      const auto bytes = static_cast<std::size_t>(block->range.end - block->range.begin);
      const base::TraceRange range(base::Stage::read);
      block->source->read_at(block->range.begin, {block->memory, bytes}, stop);
    } catch (const std::exception&) {
      read = false;  // the worker that needs the block reads it again, and reports the error
    }
    const double seconds = watch.lap();
    lock.lock();
    if (read) block_time_.add(seconds);
    const bool wanted = block->state == State::reading;
    block->state = State::ready;
    if (!wanted || !read) give_back(*block);
    arrived_.notify_all();
  }
}

void BlocksAhead::give_back(Block& block) noexcept {
  // What is being read is given back by the thread that reads it.
  if (block.state == State::ready) {
    free_.push_back(block.memory);  // has room for all
    wake_.notify_one();
  }
  block.state = State::gone;
}

}  // namespace chunkio::io
