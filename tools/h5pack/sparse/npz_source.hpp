/// Matrices that scipy.sparse.save_npz() wrote: csr, csc and coo.
#pragma once

#include <memory>

#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// Entries of one place are summed.
/// \throws Error not_found, io_failed, corrupt_data; unsupported: other formats of matrices, and
///         element types that files do not have.
[[nodiscard]] std::unique_ptr<MatrixSource> open_npz(const MatrixRequest& request);

}  // namespace h5pack
