/// Writes a small file whole or not at all.
#pragma once

#include <span>
#include <string>

namespace cli {

/// Refuses early what write_atomic_file would refuse at the end: PATH exists and `overwrite` is
/// false, PATH is no regular file, or its folder does not exist or is not writable. \throws
/// chunkio::Error output_exists, not_found, io_failed.
void check_atomic_file(const std::string& path, bool overwrite);

/// Writes `bytes` to a temporary file in the folder of `path` and renames it. A failure leaves
/// nothing behind and `path` as it was.
/// \throws chunkio::Error output_exists (`path` exists and `overwrite` is false), no_space,
///         io_failed.
void write_atomic_file(const std::string& path, std::span<const unsigned char> bytes,
                       bool overwrite);

}  // namespace cli
