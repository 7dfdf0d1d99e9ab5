/// Matrix Market files, coordinate format (Boisvert, Pozo and Remington, NISTIR 5935, 1996).
#pragma once

#include <memory>

#include "h5pack/sparse/byte_stream.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// Real, integer and pattern (each entry is 1); general, symmetric and skew-symmetric, whose other
/// half is added. Entries of one place are summed.
/// \throws Error corrupt_data, with the line; unsupported: arrays, complex numbers.
[[nodiscard]] std::unique_ptr<MatrixSource> open_mtx(const MatrixRequest& request,
                                                     std::unique_ptr<ByteStream> stream);

}  // namespace h5pack
