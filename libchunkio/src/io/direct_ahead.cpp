#include "io/direct_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/stopwatch.hpp"
#include "base/trace.hpp"
#include "io/direct_file.hpp"

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

/// The blocks of some ranges, for the thread that reads them.
class DirectAhead::Prefetched final : public WrappingSource {
 public:
  Prefetched(DirectAhead& ahead, std::shared_ptr<const ByteSource> source, Blocks blocks)
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
    ahead_.arrived_.wait(lock, [&block] { return block.state != State::reading; });
    time.waited_seconds += watch.lap();
    if (block.state == State::ready) return &block;
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

  DirectAhead& ahead_;
  Blocks blocks_;                 // ascending
  mutable std::size_t next_ = 0;  // those before were given back
};

DirectAhead::DirectAhead(std::int64_t memory_bytes) : num_blocks_(blocks_in(memory_bytes)) {}

std::int64_t DirectAhead::memory_bytes() const noexcept {
  if (num_blocks_ == 0) return 0;
  return static_cast<std::int64_t>(
      base::HostBuffer::footprint(static_cast<std::size_t>(num_blocks_ * kStride)));
}

std::unique_ptr<const ByteSource> DirectAhead::prefetch(std::shared_ptr<const ByteSource> source,
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
    bool read = true;
    try {
      const auto bytes = static_cast<std::size_t>(block->range.end - block->range.begin);
      const base::TraceRange range(base::Stage::read);
      block->source->read_at(block->range.begin, {block->memory, bytes}, stop);
    } catch (const std::exception&) {
      read = false;  // the worker that needs the block reads it again, and reports the error
    }
    lock.lock();
    const bool wanted = block->state == State::reading;
    block->state = State::ready;
    if (!wanted || !read) give_back(*block);
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

}  // namespace chunkio::io
