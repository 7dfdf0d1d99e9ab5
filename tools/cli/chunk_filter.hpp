/// The --filter option: which HDF5 filters compress the chunks of a new file.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <chunkio/dataset_writer.hpp>

namespace cli {

/// Parses "none", "deflate:N" or "shuffle+deflate:N", N from 1 to 9.
/// \throws chunkio::Error invalid_argument.
[[nodiscard]] chunkio::ChunkFilter parse_filter(const std::string& text);

/// \param target  must outlive the parse.
CLI::Option* add_filter(CLI::App& app, chunkio::ChunkFilter& target);

}  // namespace cli
