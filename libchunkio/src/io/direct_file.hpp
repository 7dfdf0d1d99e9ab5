/// A file opened once more for reads or writes that bypass the page cache (O_DIRECT).
#pragma once

#include <cstdint>
#include <string>

#include "base/positional_io.hpp"

namespace chunkio::io {

/// A multiple of every block size in use: what offsets, lengths and addresses of direct I/O are
/// aligned to where nothing smaller is known.
inline constexpr std::int64_t kDirectPage = 4096;

/// Bytes to read or write at a time: a disk serves no less at full speed, since it is asked for
/// nothing else meanwhile (decision 008).
inline constexpr std::int64_t kDirectPieceBytes = std::int64_t{4} << 20;

struct DirectFile {
  base::FileDescriptor descriptor = {};  ///< Invalid: the file system refuses direct I/O.
  std::int64_t block_bytes = 1;          ///< Direct reads begin and end at multiples of it.
};

/// \param fd  the file as it is open already.
/// \param access  O_RDONLY, O_WRONLY or O_RDWR.
[[nodiscard]] DirectFile open_direct(int fd, const std::string& path, int access);

}  // namespace chunkio::io
