/// One dataset of a file as it is stored: all that a chunk source needs to know about it.
///
/// Images and streamed fields alike. Immutable after open(), except that its chunk index fills as
/// chunks are looked up (thread-safe), and that `checked` and libhdf5 calls on `dataset` are for
/// holders of Library::lock().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "h5/chunk_index.hpp"
#include "h5/handle.hpp"

namespace chunkio::h5 {

/// The largest filtered chunk, before filters: whole ones are held in memory, so a small file could
/// ask for a lot of it.
inline constexpr std::int64_t kMaxFilteredChunkBytes = std::int64_t{256} << 20;

/// One filter of a pipeline. Values are HDF5's registered ids.
struct FilterStep {
  static constexpr int kDeflate = 1;
  static constexpr int kShuffle = 2;
  static constexpr int kFletcher32 = 3;
  // Of plugins, as https://github.com/HDFGroup/hdf5_plugins registers them.
  static constexpr int kLzf = 32000;
  static constexpr int kBlosc = 32001;
  static constexpr int kLz4 = 32004;
  static constexpr int kZstandard = 32015;

  int id = 0;
  std::string name = {};  ///< "deflate", "filter 32015", ...
  /// Client values stored in the file (level of deflate, element size of shuffle, ...).
  std::vector<unsigned int> values = {};
};

struct StoredArray {
  std::string name = {};                 ///< Path of the dataset inside the file.
  StoredLayout stored = {};              ///< Shape [N,...], element type, chunking.
  std::int64_t row_bytes = 0;            ///< Bytes of one row of axis 0, >= 1.
  std::int64_t num_chunks = 0;           ///< 0 if not chunked.
  std::int64_t chunk_bytes = 0;          ///< Of a whole chunk before filters, as it is stored.
  std::int64_t stored_bytes = 0;         ///< In the file, after filters.
  std::vector<FilterStep> filters = {};  ///< In the order in which they were applied when writing.
  /// False: chunks that reach beyond the dataset were left unfiltered, whatever their filter mask
  /// says (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS).
  bool partial_chunks_filtered = true;
  /// A filter is not part of libhdf5, so nothing of it decodes chunks: see decoded_rows.hpp.
  bool decoded_here = false;
  /// Rows are uint8 that are made of other numbers when they are read.
  std::optional<PixelScale> scale = {};
  /// Bytes in the file, after filters are undone, are the elements as this machine has them.
  bool native_elements = true;
  /// One element, for chunks without storage.
  std::vector<std::byte> fill_value = {};
  DatasetId dataset;

  /// File offset of row 0 if all rows lie in one unfiltered run in row order (contiguous data, and
  /// chunks of whole rows behind an implicit or single-chunk index): row r is at *linear_offset + r
  /// * row_bytes. Checked to lie inside the file.
  std::optional<std::int64_t> linear_offset = {};
  /// Where each chunk lies. Null if the data is not chunked, if libhdf5 alone can read it, or if
  /// linear_offset says it for more chunks than a table is worth.
  std::unique_ptr<ChunkIndex> index = {};
  /// What libhdf5 alone can do with this array, as a clause ("big-endian elements", "szip filter");
  /// empty if its bytes can be read without it.
  std::string needs_libhdf5 = {};

  /// Bytes that libhdf5's chunk cache of `dataset` may take: two row groups where it must read
  /// whole chunks to deliver a row (filtered, or chunks that cut rows), else none.
  std::int64_t chunk_cache_bytes = 0;

  /// Of the chunks along axis 0: whether check_chunks() found those there to be sound. Empty before
  /// the first. Guarded by Library::lock().
  mutable std::vector<bool> checked = {};

  /// The chunk at grid position `coord` was stored as it is: there are no filters, or all were
  /// skipped.
  [[nodiscard]] bool stored_raw(std::span<const std::int64_t> coord,
                                std::uint32_t filter_mask) const noexcept {
    for (std::size_t axis = 0; axis < coord.size() && !partial_chunks_filtered; ++axis) {
      if ((coord[axis] + 1) * stored.chunk_shape[axis] > stored.shape[axis]) return true;
    }
    // More filters than mask bits: the rest cannot be skipped.
    const std::uint64_t all = (std::uint64_t{1} << std::min<std::size_t>(filters.size(), 33)) - 1;
    return (filter_mask & all) == all;
  }
  /// Chunks hold whole rows: all axes but the first are uncut. Also true of contiguous data.
  [[nodiscard]] bool whole_rows() const {
    return !stored.chunked ||
           stored.chunk_shape.without_first_axis() == stored.shape.without_first_axis();
  }
  /// "chunk 12 (rows 400 to 499) of images in FILE"; `chunk` counts along axis 0.
  [[nodiscard]] std::string describe_chunk(std::int64_t chunk, const std::string& path) const;
  /// "rows 400 to 499 of images in FILE".
  [[nodiscard]] std::string describe_rows(std::int64_t first, std::int64_t last,
                                          const std::string& path) const;
};

/// The shape in the file of what is delivered as `delivered`: the same, or, as of labels [N] that
/// are stored as [N,1], with one more axis of size 1. Called while Library::lock() is held. \throws
/// Error hdf5_failed.
[[nodiscard]] Shape stored_shape(const DatasetId& dataset, const std::string& name,
                                 const Shape& delivered, const std::string& path);

/// Looks at the dataset `name` of an open file, images or a field. Takes Library::lock().
/// \param shape, dtype     of what is delivered: as stored_shape() says, the dataset may have one
/// more
///                         axis, and its elements another type. All rows together have fewer than
///                         2^63 bytes.
/// \param max_cache_bytes  at most this much for chunk_cache_bytes. Less than it takes costs time:
///                         chunks are decoded again.
/// \param scale            of images that are stored as other numbers.
/// \throws Error corrupt_data, unsupported (a filter that libhdf5 lacks, chunks too large),
///         hdf5_failed.
[[nodiscard]] std::shared_ptr<const StoredArray> open_array(
    const Dataset::Impl& file, const std::string& name, const Shape& shape, DType dtype,
    std::int64_t max_cache_bytes = std::numeric_limits<std::int64_t>::max(),
    const std::optional<PixelScale>& scale = {});

}  // namespace chunkio::h5
