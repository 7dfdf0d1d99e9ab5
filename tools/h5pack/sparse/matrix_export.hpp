/// A sparse matrix as files of other programs, written in bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "cli/atomic_folder.hpp"
#include "cli/progress.hpp"

namespace h5pack {

enum class MatrixFormat {
  npz,  ///< `matrix.npz`, as scipy.sparse.save_npz() writes it.
  mtx,  ///< `matrix.mtx`, Matrix Market's coordinate format.
};

/// The files that export_matrix() writes: the matrix, the table of its rows and that of its
/// columns.
[[nodiscard]] std::vector<std::string> exported_files(MatrixFormat format);

/// Writes the CSR matrix that leads `dataset`; `rows.csv` with the name of each row and its fields;
/// and `columns.csv` with names. Rows and columns without names are numbered from 0. Fields of rows
/// are held in memory. Polls StopSignal. Blocks on I/O.
/// \param progress  of entries.
/// \returns names of fields that the table of rows leaves out.
/// \throws Error as Dataset::read_entries() and AtomicFolder.
std::vector<std::string> export_matrix(const chunkio::Dataset& dataset, MatrixFormat format,
                                       const cli::AtomicFolder& folder, cli::Progress& progress);

}  // namespace h5pack
