/// A CSV file with one entry a line: the name of its row, that of its column, and a value.
#pragma once

#include <memory>

#include "h5pack/sparse/byte_stream.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// The first line names the columns. Rows and columns of the matrix are numbered in the order in
/// which their names are first met; of several entries of one place the last counts.
/// \throws Error corrupt_data, with the line; invalid_argument: no such column.
[[nodiscard]] std::unique_ptr<MatrixSource> open_ratings(const MatrixRequest& request,
                                                         std::unique_ptr<ByteStream> stream);

}  // namespace h5pack
