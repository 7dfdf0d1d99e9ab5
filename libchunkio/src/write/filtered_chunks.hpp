/// Chunks that are filtered: the calling thread compresses its chunk; libhdf5 writes chunks one at
/// a time and, as far as they arrive so, in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <span>

#include <chunkio/dataset_writer.hpp>

#include "base/scratch_pool.hpp"
#include "h5/chunk_encoder.hpp"
#include "h5/skeleton_writer.hpp"
#include "write/chunk_store.hpp"

namespace chunkio::write {

/// Keeps no journal: what a killed writer leaves has no structure yet.
class FilteredChunks final : public ChunkStore {
 public:
  /// Creates everything but pixels, digests and statistics in the empty `file`.
  /// \param chunk_bytes  before filters. \throws Error hdf5_failed, io_failed, no_space.
  FilteredChunks(PartialFile file, const DatasetSpec& spec, const h5::SkeletonOptions& options,
                 std::int64_t chunk_bytes);

  [[nodiscard]] PartialFile& file() noexcept override { return file_; }
  void check() override;
  /// Compresses a chunk and writes it, or holds it back until those before it are written; never
  /// for long: what is held back beyond kMaxHeldBytes and two chunks is written out of order. The
  /// first failure of libhdf5 is final.
  void write(std::int64_t chunk, std::span<const std::byte> rows, std::uint64_t digest,
             std::string_view note) override;
  /// Writes what is held back, then as h5::FilteredFile::finish().
  void complete(std::span<const FieldData> fields, h5::Completion completion) override;
  [[nodiscard]] Dataset open() const override { return Dataset::open(file_.path()); }
  [[nodiscard]] std::optional<std::int64_t> first_damaged(const Dataset& dataset,
                                                          std::stop_token stop) override;

  static constexpr std::size_t kMaxHeldBytes = std::size_t{32} << 20;

 private:
  void write_first_held();

  PartialFile file_;
  std::int64_t chunk_bytes_;
  ChunkFilter filter_;
  base::ScratchPool<h5::ChunkEncoder> encoders_;

  std::mutex mutex_;  ///< Guards what follows. Locked before h5::Library::lock().
  h5::FilteredFile structure_;
  std::map<std::int64_t, h5::EncodedChunk> held_;
  std::size_t held_bytes_ = 0;
  std::int64_t next_ = 0;  ///< After the last chunk written so far.
  std::exception_ptr failure_;

  std::atomic<bool> failed_ = false;  ///< Says without the mutex whether failure_ is set.
};

}  // namespace chunkio::write
