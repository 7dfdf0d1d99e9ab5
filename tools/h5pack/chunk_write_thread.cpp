#include "chunk_write_thread.hpp"

#include <span>
#include <utility>

namespace h5pack {

ChunkWriteThread::ChunkWriteThread(chunkio::DatasetWriter& writer, std::int64_t sample_bytes,
                                   std::int64_t max_queued, BufferPool& pool)
    : writer_(writer),
      sample_bytes_(static_cast<std::size_t>(sample_bytes)),
      max_queued_(static_cast<std::size_t>(max_queued)),
      pool_(pool),
      thread_([this] { run(); }) {}

ChunkWriteThread::~ChunkWriteThread() { close_and_join(); }

void ChunkWriteThread::push(PackedChunk chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < max_queued_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  queue_.push_back(std::move(chunk));
  changed_.notify_all();
}

void ChunkWriteThread::finish() {
  close_and_join();
  if (failure_) std::rethrow_exception(failure_);
}

void ChunkWriteThread::close_and_join() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ChunkWriteThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
    if (queue_.empty()) return;
    PackedChunk chunk = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    lock.unlock();
    std::exception_ptr failure;
    try {
      writer_.write_chunk(
          chunk.chunk,
          std::as_bytes(std::span(chunk.pixels.get(),
                                  static_cast<std::size_t>(chunk.num_rows) * sample_bytes_)),
          to_note(chunk.record));
      pool_.give_back(std::move(chunk.pixels));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!failure) continue;
    failure_ = failure;
    changed_.notify_all();
    return;
  }
}

}  // namespace h5pack
