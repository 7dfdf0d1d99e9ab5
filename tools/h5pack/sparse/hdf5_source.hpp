/// Matrices in HDF5 files, by rows (CSR) or columns (CSC): of AnnData, 10x Genomics, scipy-like
/// groups and files of this library, one or several shards.
#pragma once

#include <memory>

#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

/// Entries of one place are summed. Names of rows and columns and, of a matrix by rows, numbers of
/// each row (in `obs`, or beside the matrix) are carried over.
/// \throws Error as chunkio::Dataset::open(); unsupported: no sparse matrix leads.
[[nodiscard]] std::unique_ptr<MatrixSource> open_hdf5_matrix(const MatrixRequest& request);

}  // namespace h5pack
