/// Where files with a sparse matrix keep the names of its rows and columns.
#pragma once

#include <cstdint>
#include <string>

#include "h5/dataset_impl.hpp"
#include "h5/file_contents.hpp"

namespace chunkio::h5 {

/// Paths of datasets of strings; empty: there is none.
struct MatrixNames {
  std::string rows = {};
  std::string columns = {};
};

/// The names of a matrix, as it is stored, of so many rows and columns. AnnData keeps them in the
/// tables `obs` and `var`, 10x Genomics beside the matrix. Called while Library::lock() is held.
[[nodiscard]] MatrixNames find_names(const Dataset::Impl& file, const std::string& group,
                                     const FileContents& contents, std::int64_t rows,
                                     std::int64_t columns);

}  // namespace chunkio::h5
