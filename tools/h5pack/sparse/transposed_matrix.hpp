/// A source whose rows are the columns of another one.
#pragma once

#include <memory>

#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

[[nodiscard]] std::unique_ptr<MatrixSource> transposed(std::unique_ptr<MatrixSource> matrix);

}  // namespace h5pack
