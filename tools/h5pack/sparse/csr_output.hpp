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

#include "h5pack/sparse/csr_packer.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// The rows of all files together. The vectors must outlive who uses this.
struct OutputRows {
  const std::vector<std::int64_t>& order;    ///< The row of the source that each is.
  const std::vector<std::int64_t>& lengths;  ///< Entries of each.
  std::int64_t source_rows = 0;
  std::int64_t num_columns = 0;
};

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
  /// Publishes the files, one after the other. \returns their bytes.
  /// \throws Error as SparseWriter::close(), saying how many shards are finished.
  std::int64_t close();

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
  [[nodiscard]] chunkio::SparseSpec specification(const Part& part);
  void add_fields(const Part& part, chunkio::SparseSpec& spec);
  [[nodiscard]] const std::vector<std::byte>& column(const chunkio::FieldInfo& field);
  [[nodiscard]] std::string shard_set() const;

  const MatrixSource& source_;
  const std::string& path_;
  const CsrOptions& options_;
  OutputRows rows_;
  std::vector<Part> parts_;
  // The field of rows that was read last.
  std::string column_name_;
  std::vector<std::byte> column_;
};

}  // namespace h5pack
