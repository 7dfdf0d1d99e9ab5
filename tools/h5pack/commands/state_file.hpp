/// Reads and writes the state of a loader: a file, or "-" for the standard streams.
#pragma once

#include <string>

namespace h5pack {

/// The text of a state file, or of standard input. Whether it is a state is for the loader to say.
/// Blocks on I/O.
/// \throws chunkio::Error not_found, io_failed, unsupported (no regular file), corrupt_data
///         (empty, or far too long).
[[nodiscard]] std::string read_state(const std::string& path);

/// Finds early what would make writing fail. What is there already is only replaced if it is a
/// state itself, so that a slip of the keyboard does not cost a dataset: not if it is empty or
/// cannot be read, either.
/// \throws chunkio::Error output_exists, not_found, io_failed.
void check_state_output(const std::string& path);

/// Writes a line, whole or not at all. For "-": on standard output.
/// \throws chunkio::Error no_space, io_failed.
void write_state(const std::string& path, const std::string& state);

}  // namespace h5pack
