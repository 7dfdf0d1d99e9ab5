/// Where the chunks of a dataset lie in the file.
///
/// Problem. libhdf5 1.10.8 can list the addresses of n chunks only in time n^2
/// (H5Dget_chunk_info walks the index from its start at each call) and reports them without the
/// file's user block; H5Dchunk_iter came with 1.10.10 and 1.12.3. So the index comes whole, with
/// the first chunk that is asked for: from the version-1 B-tree that most files have
/// (chunk_tree.hpp), or from H5Dchunk_iter where there is one.
///
/// Chunks of other kinds of index are looked up one by one, as they are asked for: a lookup inside
/// H5Dread_chunk costs O(log n) whatever kind it is, and a file that notes which bytes libhdf5 asks
/// for, and returns without reading them, tells position and stored size of a chunk (SourceFile),
/// user block included, and H5Dread_chunk itself returns the filter mask.
///
/// Entries are kept as long as the index, in 16 bytes each. Each is checked: inside the file, of
/// the only size there can be if nothing is filtered, overlapping no other chunk. A bad entry is an
/// error of its own chunk only; of two chunks that overlap either can be the wrong one, so both are
/// errors. Where chunks are looked up one by one, the one asked for first was delivered before
/// anything could be told about it. Therefore an overlap has an error code that is not skipped
/// (OnError::skip): a reader that went on could have wrong rows already. Thread-safe; takes
/// Library::lock() before its own mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <hdf5.h>

#include <chunkio/byte_source.hpp>
#include <chunkio/tensor.hpp>

#include "h5/chunk_tree.hpp"

// H5Dchunk_iter came with 1.10.10, 1.12.3 and 1.14.0; the one of 1.13 gave other offsets.
#ifndef CHUNKIO_HAVE_CHUNK_ITER
#if H5_VERSION_GE(1, 14, 0) || (H5_VERSION_GE(1, 12, 3) && !H5_VERSION_GE(1, 13, 0)) || \
    (H5_VERSION_GE(1, 10, 10) && !H5_VERSION_GE(1, 11, 0))
#define CHUNKIO_HAVE_CHUNK_ITER 1
#else
#define CHUNKIO_HAVE_CHUNK_ITER 0
#endif
#endif

namespace chunkio::h5 {

/// One chunk as it is stored.
struct ChunkEntry {
  /// Byte position in the file, user block included; -1 if no storage is allocated: all elements
  /// have the fill value.
  std::int64_t file_offset = -1;
  std::int64_t stored_bytes = 0;
  /// Bit i set: filter i of the pipeline was skipped when this chunk was written.
  std::uint32_t filter_mask = 0;

  [[nodiscard]] bool allocated() const noexcept { return file_offset >= 0; }
};

class ChunkIndex {
 public:
  /// More chunks than this are not worth a table.
  static constexpr std::int64_t kMaxChunks = std::int64_t{1} << 24;

  /// Where the chunks to be found are.
  struct Target {
    std::string path = {};        ///< Of the file, for messages.
    std::string dataset = {};     ///< Path of the dataset inside the file.
    Shape shape = {};             ///< Of the dataset.
    Shape chunk = {};             ///< Same rank.
    std::int64_t first_byte = 0;  ///< Chunks begin there or behind: after the superblock.
    std::int64_t file_bytes = 0;  ///< Chunks must end there or before.
    /// The exact stored size of every chunk if there are no filters; else 0.
    std::int64_t raw_bytes = 0;
    /// Lists the chunks, if it is there; else libhdf5 is asked.
    std::optional<ChunkTree> tree = {};
  };

  /// Looks up nothing yet.
  /// \throws Error out_of_resources, corrupt_data (more chunks than can be counted).
  ChunkIndex(std::shared_ptr<const ByteSource> bytes, Target target);
  ~ChunkIndex();
  ChunkIndex(const ChunkIndex&) = delete;
  ChunkIndex& operator=(const ChunkIndex&) = delete;

  /// The chunk at grid position `coord` (chunks, not elements; one number an axis).
  /// \pre inside grid(); num_chunks() <= kMaxChunks.
  /// \throws Error corrupt_data (the entry cannot be true), unsupported (it overlaps another, so
  ///         nothing of the file can be believed), hdf5_failed.
  [[nodiscard]] ChunkEntry find(std::span<const std::int64_t> coord) const;
  /// The same for any number of chunks: looks it up afresh and remembers nothing, so overlaps are
  /// not found.
  /// \pre inside grid().
  /// \throws Error corrupt_data, hdf5_failed.
  [[nodiscard]] ChunkEntry find_once(std::span<const std::int64_t> coord) const;

  struct Listed {
    std::int64_t bytes = 0;   ///< Of all chunks in the file. Entries that cannot be true have none.
    std::string damage = {};  ///< Of the index, as a clause; empty: none was found.
  };
  /// Lists all chunks; absent if the index does not come whole.
  /// \pre num_chunks() <= kMaxChunks. \throws Error io_failed, hdf5_failed.
  [[nodiscard]] std::optional<Listed> list() const;

  /// Chunks along each axis.
  [[nodiscard]] std::span<const std::int64_t> grid() const noexcept;
  [[nodiscard]] std::int64_t num_chunks() const noexcept;
  /// Bytes the index takes at most; part of the memory budget. That is 16 for each chunk, and 4
  /// more while they are listed; 64 more where they are looked up one by one. \pre num_chunks() <=
  /// kMaxChunks.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls visit(position) for the position in the grid of each chunk of row `chunk` of chunks.
template <class Visit>
void for_each_column(const ChunkIndex& index, std::int64_t chunk, Visit visit) {
  const std::span<const std::int64_t> grid = index.grid();
  std::array<std::int64_t, Shape::kMaxRank> position{};
  position[0] = chunk;
  for (;;) {
    visit(std::span<const std::int64_t>(position.data(), grid.size()));
    std::size_t axis = grid.size() - 1;
    for (; axis > 0; --axis) {
      if (++position[axis] < grid[axis]) break;
      position[axis] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace chunkio::h5
