/// The structure of a file with a sparse matrix, which anndata reads as it is, without its numbers.
///
/// All datasets lie in one run each, whose place is known once the file is closed, so that what
/// they hold is written by position, without libhdf5. Takes Library::lock().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5/deferred_writes.hpp"
#include "h5/placed_bytes.hpp"

namespace chunkio::h5 {

/// What is not of the matrix but of the file.
struct SparseFile {
  std::string creator = {};
  std::string uuid = {};
  std::int64_t row_name_bytes = 1;     ///< Of the longest; the others are padded to it.
  std::int64_t column_name_bytes = 0;  ///< The same; 0: there is no `var`.
};

struct SparsePlaces {
  PlacedBytes indptr, indices, data;
  PlacedBytes row_names, digests;
  std::optional<PlacedBytes> column_names = {};
  std::vector<PlacedBytes> fields = {};       ///< In the order of the specification.
  std::vector<DigestedBytes> structure = {};  ///< All that libhdf5 wrote.
};

/// The type in which column numbers are stored.
[[nodiscard]] constexpr DType index_dtype(std::int64_t num_columns) noexcept {
  return num_columns < (std::int64_t{1} << 31) ? DType::int32 : DType::int64;
}

/// Creates everything in the empty file `fd`. Does not sync.
/// \pre the specification was checked.
/// \throws Error hdf5_failed, io_failed, no_space.
[[nodiscard]] SparsePlaces write_sparse_structure(int fd, const std::string& path,
                                                  const SparseSpec& spec, const SparseFile& file);

/// Where the entries lie, as a reader finds them. \throws Error hdf5_failed, io_failed.
struct EntryPlaces {
  PlacedBytes indptr, indices, data;
};
[[nodiscard]] EntryPlaces find_entries(const std::string& path);

}  // namespace chunkio::h5
