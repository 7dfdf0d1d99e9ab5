#include "h5pack/pack/chunk_write_thread.hpp"

#include <span>
#include <utility>

namespace h5pack {

ChunkWriteThread::ChunkWriteThread(chunkio::DatasetWriter& writer, std::int64_t sample_bytes,
                                   std::int64_t max_queued, BufferPool& pool)
    : writer_(writer),
      sample_bytes_(static_cast<std::size_t>(sample_bytes)),
      max_queued_(static_cast<std::size_t>(max_queued)),
      pool_(pool) {
  try {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::exception&) {
    // There is no room for a second one, and one will do: it also waits to be told to end.
    if (threads_.empty()) throw;
  }
}

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
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  threads_.clear();
}

void ChunkWriteThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || closed_ || failure_; });
    if (queue_.empty() || failure_) return;
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
    if (!failure_) failure_ = failure;
    changed_.notify_all();
    return;
  }
}

}  // namespace h5pack
