/// Writes chunks beside the threads that decode, so that none of them waits for the disk.
///
/// Two threads: chunks bypass the page cache, and a disk that is given the next one while it
/// writes is half as fast again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/pack/chunk_assembler.hpp"

namespace h5pack {

/// Threads behind a short queue. push() from any thread, finish() and the destructor from one.
class ChunkWriteThread {
 public:
  /// Chunks that are written at a time, at most.
  static constexpr int kThreads = 2;

  /// Starts the threads; where only one can be had, one.
  /// \param sample_bytes  of a row of every chunk.
  /// \param max_queued    chunks that may wait, beside those being written; at least 1.
  /// \param pool          gets the buffers back. It and `writer` must outlive this.
  /// \throws std::system_error, std::bad_alloc if there is to be no thread at all.
  ChunkWriteThread(chunkio::DatasetWriter& writer, std::int64_t sample_bytes,
                   std::int64_t max_queued, BufferPool& pool);
  ChunkWriteThread(const ChunkWriteThread&) = delete;
  ChunkWriteThread& operator=(const ChunkWriteThread&) = delete;
  /// Writes what waits, but does not say whether that went well.
  ~ChunkWriteThread();

  /// Blocks while the queue is full.
  /// \throws what writing an earlier chunk threw; nothing is taken then.
  void push(PackedChunk chunk);
  /// Blocks until all is written.
  /// \throws what writing threw.
  void finish();

 private:
  void run();
  void close_and_join();

  chunkio::DatasetWriter& writer_;
  std::size_t sample_bytes_;
  std::size_t max_queued_;
  BufferPool& pool_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::deque<PackedChunk> queue_;
  bool closed_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // Last: they use all of the above.
};

}  // namespace h5pack
