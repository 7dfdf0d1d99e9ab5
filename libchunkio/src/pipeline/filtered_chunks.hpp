/// Writes filtered chunks: the calling thread compresses its chunk; chunks are written one at a
/// time and, as far as they arrive so, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <chunkio/dataset_writer.hpp>

#include "base/scratch_pool.hpp"
#include "h5/chunk_encoder.hpp"
#include "h5/skeleton_writer.hpp"

namespace chunkio::pipeline {

class FilteredChunks {
 public:
  /// As h5::FilteredFile, whose errors are thrown.
  FilteredChunks(int fd, const std::string& path, const DatasetSpec& spec,
                 const h5::SkeletonOptions& options);

  /// Compresses a whole chunk and writes it, or holds it back until those before it are written;
  /// never for long: what is held back beyond kMaxHeldBytes and two chunks is written out of order.
  /// Thread-safe for distinct chunks. The first failure is final.
  /// \throws Error hdf5_failed, io_failed, no_space, out_of_resources.
  void write(std::int64_t chunk, std::span<const std::byte> rows);
  /// Writes what is held back, then as h5::FilteredFile::finish(). To be called once, when no
  /// write() runs.
  void finish(const h5::Completion& completion);
  /// \throws what the first failure was, if there was one.
  void check();

  static constexpr std::size_t kMaxHeldBytes = std::size_t{32} << 20;

 private:
  void write_first_held();

  ChunkFilter filter_;
  base::ScratchPool<h5::ChunkEncoder> encoders_;

  std::mutex mutex_;  ///< Guards what follows. Locked before h5::Library::lock().
  h5::FilteredFile file_;
  std::map<std::int64_t, h5::EncodedChunk> held_;
  std::size_t held_bytes_ = 0;
  std::int64_t next_ = 0;  ///< After the last chunk written so far.
  std::exception_ptr failure_;
};

}  // namespace chunkio::pipeline
