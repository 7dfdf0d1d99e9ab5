/// The suites of the program `figures`, except that of the GPU.
#pragma once

#include "harness/suite.hpp"

namespace bench {

/// The loader against the memory, the disk and its peers.
[[nodiscard]] Suite reading_suite();
/// Normalizer against the memory, a loop of one line, and PyTorch.
[[nodiscard]] Suite normalizing_suite();
/// Rows of a sparse matrix against the memory and other loaders.
[[nodiscard]] Suite sparse_suite();
/// Files with one image a chunk against the disk, libdeflate and larger chunks.
[[nodiscard]] Suite small_chunks_suite();
/// h5pack against its decoder, the disk and its peers. Only where h5pack is built.
[[nodiscard]] Suite packing_suite();

/// Images that are decoded while they are read. Only where h5pack is built.
[[nodiscard]] Suite encoded_suite();

}  // namespace bench
