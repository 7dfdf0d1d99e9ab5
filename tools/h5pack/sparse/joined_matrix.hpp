/// The rows of a matrix in a file, and those of another source behind them: what h5pack append csr
/// packs.
#pragma once

#include <cstdint>
#include <memory>

#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// One more than the highest `source_index` of a file's rows; without that, the number of rows.
/// Blocks on I/O. \throws Error unsupported: no numbers are left for further rows.
[[nodiscard]] std::int64_t next_source_row(const MatrixSource& file);

/// Both give values of one dtype. Columns are the same in number and, where both name them, in
/// names and order. Rows of both keep their names; a row of `added` without one is called its
/// `source_index`, which goes on behind the highest of `before`. Other numbers of rows are those of
/// `before`, and `added` must have them.
/// \param first_source_row  `source_index` of the first row of `added`.
/// \throws Error unsupported (a field that only `before` has); from read(), too, where the columns
///         differ or there are too many rows.
[[nodiscard]] std::unique_ptr<MatrixSource> joined(std::unique_ptr<MatrixSource> before,
                                                   std::unique_ptr<MatrixSource> added,
                                                   std::int64_t first_source_row);

}  // namespace h5pack
