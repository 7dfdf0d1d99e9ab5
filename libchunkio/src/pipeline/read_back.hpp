/// Reads chunks back and compares them with their digests, in parallel where it pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace chunkio::pipeline {

/// Bytes of a file and the XXH3-64 they should have.
struct ExpectedBytes {
  std::int64_t file_offset = 0;
  std::uint64_t digest = 0;
};

/// Which of `pieces` are not what they should be, or cannot be read: their positions in it,
/// ascending.
///
/// Takes what is in the page cache from there. Takes `piece_bytes` of memory for each thread;
/// starts as many as there are processors, at most eight, and none for a few MiB. Blocks on I/O.
/// \param piece_bytes  of every piece.
/// \param path  for messages.
/// \throws Error cancelled if `stop` was requested.
[[nodiscard]] std::vector<std::size_t> find_damaged(int fd, std::span<const ExpectedBytes> pieces,
                                                    std::int64_t piece_bytes,
                                                    const std::string& path, std::stop_token stop);

}  // namespace chunkio::pipeline
