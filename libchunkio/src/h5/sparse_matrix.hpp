/// A CSR matrix in a file: a group with `data`, `indices` and `indptr`.
///
/// AnnData says what such a group is with attributes (anndata.readthedocs.io, "On-disk format");
/// files of 10x Genomics have a dataset `shape` instead, which counts rows and columns of the
/// transpose. All functions are called while Library::lock() is held, unless they say otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5/file_contents.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// The most that a matrix may claim.
inline constexpr std::int64_t kMaxColumns = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxValues = std::int64_t{1} << 44;

struct SparseMatrix {
  std::string name = {};    ///< Path of the group; empty: the root group.
  bool transposed = false;  ///< Stored by columns, which are taken as rows.
  std::int64_t rows = 0, columns = 0, num_entries = 0;
  std::shared_ptr<const StoredArray> values = {};
  std::shared_ptr<const StoredArray> indices = {};  ///< int32 or int64 as they are read.
  std::shared_ptr<const StoredArray> offsets = {};  ///< `indptr`: int64 [rows + 1] as it is read.

  [[nodiscard]] DType index_dtype() const noexcept { return indices->stored.dtype; }
  /// Of an entry.
  [[nodiscard]] std::int64_t entry_bytes() const noexcept {
    return values->row_bytes + indices->row_bytes;
  }
  /// "rows 0 to 99 of X in FILE".
  [[nodiscard]] std::string describe_rows(std::int64_t first, std::int64_t last,
                                          const std::string& path) const;

  /// \param of_rows  offsets of rows [first, first + of_rows.size() - 1), and the end of the last.
  /// \throws Error corrupt_data, naming the row, unless they ascend within the entries.
  void check_offsets(std::int64_t first, std::span<const std::int64_t> of_rows,
                     const std::string& path) const;
  /// \param bytes  of `indices`, of rows from `first` to `last`.
  /// \throws Error corrupt_data if one is no column.
  void check_indices(std::span<const std::byte> bytes, std::int64_t first, std::int64_t last,
                     const std::string& path) const;
};

/// The paths of groups that look like a sparse matrix: they have the three datasets.
[[nodiscard]] std::vector<std::string> sparse_groups(const FileContents& contents);

/// Whether a dataset is a part of the matrix of a group.
[[nodiscard]] bool is_member(const std::string& group, const std::string& dataset);

/// Opens the matrix of a group that sparse_groups() found.
/// \param columns_as_rows  see OpenOptions.
/// \throws Error unsupported (stored by columns; nothing says how many columns there are),
///         corrupt_data, hdf5_failed.
[[nodiscard]] std::shared_ptr<const SparseMatrix> open_sparse(const Dataset::Impl& file,
                                                              const std::string& group,
                                                              const FileContents& contents,
                                                              bool columns_as_rows);

/// Rows of the matrix of one file.
struct SparsePart {
  const SparseMatrix* matrix = nullptr;
  std::int64_t first = 0, count = 0;
  std::string path = {};
};

/// See Dataset::read_sparse(). Takes Library::lock(). \param parts  one behind the other.
[[nodiscard]] SparseRows read_sparse(std::span<const SparsePart> parts, const SparseInfo& info,
                                     DType dtype);
/// See Dataset::read_row_begins(), of the rows of one file. Takes Library::lock().
void read_row_begins(const SparseMatrix& matrix, std::int64_t first, std::span<std::int64_t> out,
                     const std::string& path);
/// See Dataset::read_entries(), of one file. Takes Library::lock().
void read_entries(const SparseMatrix& matrix, std::int64_t first, std::span<std::int64_t> columns,
                  std::span<std::byte> values, const std::string& path);

}  // namespace chunkio::h5
