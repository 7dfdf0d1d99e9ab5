/// The files that a packed matrix becomes: one, or its shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "h5pack/sparse/csr_packer.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// The rows of all files together. The vectors must outlive who uses this.
struct OutputRows {
  const std::vector<std::int64_t>& order;    ///< The row of the source that each is.
  const std::vector<std::int64_t>& lengths;  ///< Entries of each.
  std::int64_t source_rows = 0;
  std::int64_t num_columns = 0;
  std::string set = {};  ///< ShardInfo::set
};

/// Shards differ by one row at most. \param shard  `shards`: behind the last one.
[[nodiscard]] inline std::int64_t first_row_of_shard(std::int64_t shard, std::int64_t shards,
                                                     std::int64_t num_rows) noexcept {
  return num_rows * shard / shards;  // no overflow: rows are below 2^32, shards at most 2^12
}

/// Says that the rows that are wanted have no entries: readers refuse such a file.
[[nodiscard]] chunkio::Error no_entries(const MatrixSource& source);

class CsrOutput {
 public:
  /// Creates the files under their names of unfinished ones. The references must outlive this.
  /// \throws Error as SparseWriter; invalid_argument: fewer rows than shards.
  CsrOutput(const MatrixSource& source, const std::string& path, const CsrOptions& options,
            const OutputRows& rows, const std::stop_token& stop);

  /// The first row that is not in the file of this row.
  [[nodiscard]] std::int64_t end_of_file(std::int64_t row) { return part_of(row).end(); }
  /// See SparseWriter::write_rows(). Thread-safe. \pre they are of one file.
  void write_rows(std::int64_t first_row, std::int64_t count, std::span<const std::int64_t> columns,
                  std::span<const std::byte> values);
  /// Publishes the files whose rows are all before `row`, one after the other. \pre they are
  /// written. \throws Error as SparseWriter::close(), saying how many shards are finished.
  void close_until(std::int64_t row);
  /// Of all files. \pre all are published.
  [[nodiscard]] std::int64_t file_bytes() const;

 private:
  struct Part {
    std::string path = {};
    std::int64_t first_row = 0;
    std::int64_t num_rows = 0;
    std::optional<chunkio::SparseWriter> writer = {};
    [[nodiscard]] std::int64_t end() const noexcept { return first_row + num_rows; }
  };

  [[nodiscard]] std::int64_t num_rows() const noexcept { return std::ssize(rows_.order); }
  [[nodiscard]] Part& part_of(std::int64_t row);
  void make_parts();
  /// \throws Error if no row of a file has an entry: readers refuse it.
  void check_parts() const;
  [[nodiscard]] chunkio::SparseSpec specification(const Part& part);
  void add_fields(const Part& part, chunkio::SparseSpec& spec);
  [[nodiscard]] const std::vector<std::byte>& column(const chunkio::FieldInfo& field);

  const MatrixSource& source_;
  const std::string& path_;
  const CsrOptions& options_;
  OutputRows rows_;
  std::vector<Part> parts_;
  std::size_t num_closed_;
  // The field of rows that was read last.
  std::string column_name_;
  std::vector<std::byte> column_;
};

}  // namespace h5pack
