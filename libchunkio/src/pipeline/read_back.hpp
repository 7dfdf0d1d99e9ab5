/// Reads chunks back and compares them with their digests, in parallel where it pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/host_memory.hpp"
#include "io/range_reader.hpp"

namespace chunkio::pipeline {

/// Bytes of a file and the XXH3-64 they should have.
struct ExpectedBytes {
  std::int64_t file_offset = 0;
  std::uint64_t digest = 0;
};

/// Reads pieces into up to 4 MiB of memory, from the disk, which may have lost what the page cache
/// still holds: round the cache, or after dropping them from it where that cannot be. Not
/// thread-safe.
class PieceReader {
 public:
  /// \param fd  open for reading; must outlive this. \param path  for messages.
  /// \throws Error out_of_resources.
  PieceReader(int fd, const std::string& path, std::int64_t piece_bytes);

  /// Whether the piece can be read and is what it should be. Blocks on I/O.
  [[nodiscard]] bool is_sound(const ExpectedBytes& piece);

 private:
  int fd_;
  io::RangeReader reader_;
  std::int64_t piece_bytes_;
  base::HostBuffer scratch_;
};

/// Which of `pieces` are not what they should be, or cannot be read: their positions in it,
/// ascending.
///
/// Takes up to 4 MiB of memory for each thread; starts as many as keep a disk busy, and none for a
/// few MiB. Blocks on I/O.
/// \param piece_bytes  of every piece.
/// \param path  for messages.
/// \throws Error cancelled if `stop` was requested; out_of_resources.
[[nodiscard]] std::vector<std::size_t> find_damaged(int fd, std::span<const ExpectedBytes> pieces,
                                                    std::int64_t piece_bytes,
                                                    const std::string& path, std::stop_token stop);

}  // namespace chunkio::pipeline
