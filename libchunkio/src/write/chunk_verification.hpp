/// Reads chunks back and compares them with their digests, in parallel where it pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/host_memory.hpp"
#include "io/range_reader.hpp"

namespace chunkio::write {

/// Rows of a file, one behind the other, and the digest they should have: the XXH3-64 of the
/// XXH3-64s of all rows.
struct ExpectedBytes {
  std::int64_t file_offset = 0;
  std::uint64_t digest = 0;
};

/// How large all pieces are.
struct PieceSize {
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  [[nodiscard]] std::int64_t bytes() const noexcept { return rows * row_bytes; }
};

/// Is told of a piece that is sound: its position, and the digests of its rows. Called from several
/// threads at once; must not throw.
using TakeSound = std::function<void(std::size_t piece, std::span<const std::uint64_t> rows)>;

/// Reads pieces into up to 4 MiB of memory, from the disk, which may have lost what the page cache
/// still holds: bypassing the cache, or after dropping them from it where that cannot be. Not
/// thread-safe.
class PieceReader {
 public:
  /// \param fd  open for reading; must outlive this. \param path  for messages.
  /// \throws Error out_of_resources, io_failed.
  PieceReader(int fd, const std::string& path, const PieceSize& size);

  /// How many of `pieces`, from the first on, are read at once: those that lie one behind the other
  /// in the file. A disk takes as long for a few bytes as for many.
  [[nodiscard]] std::size_t run_of(std::span<const ExpectedBytes> pieces) const noexcept;
  /// Reads a run, and compares. Blocks on I/O.
  /// \param take_sound  as find_damaged().
  /// \returns the positions in `run` of those that are not what they should be, or cannot be read.
  [[nodiscard]] std::vector<std::size_t> find_damaged(std::span<const ExpectedBytes> run,
                                                      const TakeSound& take_sound = {});

 private:
  [[nodiscard]] bool read(std::int64_t offset, std::int64_t bytes);

  std::shared_ptr<const ByteSource> bytes_;
  io::RangeReader reader_;
  PieceSize size_;
  base::HostBuffer scratch_;
  base::RowDigests rows_;  // of the run that was read last
};

/// Which of `pieces` are not what they should be, or cannot be read: their positions in it,
/// ascending.
///
/// Takes up to 4 MiB of memory for each thread; starts as many as keep a disk busy, and none for a
/// few MiB. Blocks on I/O.
/// \param path  for messages.
/// \throws Error cancelled if `stop` was requested; out_of_resources.
[[nodiscard]] std::vector<std::size_t> find_damaged(int fd, std::span<const ExpectedBytes> pieces,
                                                    const PieceSize& size, const std::string& path,
                                                    std::stop_token stop,
                                                    const TakeSound& take_sound = {});

}  // namespace chunkio::write
