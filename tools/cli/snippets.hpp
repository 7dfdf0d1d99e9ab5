/// Lines to copy from a report, with names quoted for the shell, Python or C++.
///
/// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <chunkio/chunk_layout.hpp>

namespace cli {

/// A string literal of Python and of C++.
[[nodiscard]] std::string string_literal(std::string_view text);

/// One word of a POSIX shell, in quotes if it needs them.
[[nodiscard]] std::string shell_word(std::string_view text);

/// To be printed under h5py_line(), whose rdcc_w0 = 1 lets HDF5 evict only chunks that were read
/// completely: where none is, rdcc_nbytes is no limit.
inline constexpr std::string_view kH5pyCacheNote =
    "# In chunk order. In random order pass rdcc_w0=0.75: with 1, up to rdcc_nslots chunks stay in "
    "memory.";

/// h5py.File("train.h5", "r", rdcc_nslots=..., rdcc_nbytes=..., rdcc_w0=...).
[[nodiscard]] std::string h5py_line(const std::string& path,
                                    const chunkio::ChunkCacheSettings& cache);

}  // namespace cli
