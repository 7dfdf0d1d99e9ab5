/// Decompresses chunks: deflate by libdeflate, LZF by itself, and Zstandard, LZ4 and Blosc by their
/// own libraries where these were found when this library was built.
///
/// Streams are those of the registered HDF5 filters, as h5py and its package hdf5plugin write them.
/// No stream, however crafted, decodes to more than the memory that it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "h5/stored_array.hpp"

struct libdeflate_decompressor;
struct ZSTD_DCtx_s;

namespace chunkio::h5 {

/// A chunk that cannot be what was written. what() is a clause about it: "its deflate stream is
/// damaged".
class DamagedChunkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Undoes the compressing filters of one dataset. For one caller at a time.
class Decompressor {
 public:
  /// \param raw_bytes  of a chunk before the filters. \throws Error out_of_resources.
  Decompressor(std::span<const FilterStep> filters, std::size_t raw_bytes);
  ~Decompressor();
  Decompressor(Decompressor&& other) noexcept;
  Decompressor& operator=(Decompressor&& other) noexcept;

  /// Whether the filter compresses, and is undone here.
  [[nodiscard]] static bool knows(int filter) noexcept;
  /// The most that the filter makes of `size` bytes. \pre knows(filter).
  [[nodiscard]] static std::size_t max_stored_bytes(int filter, std::size_t size) noexcept;

  /// \returns the bytes that were written to `out`. \throws DamagedChunkError, also if they are
  /// more than out.size(); std::bad_alloc. \pre knows(filter); it is one of the dataset's.
  [[nodiscard]] std::size_t undo(int filter, std::span<const std::byte> stream,
                                 std::span<std::byte> out) const;

  /// Bytes that it takes, and its libraries for a chunk, for the memory budget.
  [[nodiscard]] std::size_t state_bytes() const noexcept { return state_bytes_; }

 private:
  struct Free {
    void operator()(libdeflate_decompressor* decompressor) const noexcept;
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };

  std::unique_ptr<libdeflate_decompressor, Free> deflate_;
  std::unique_ptr<ZSTD_DCtx_s, Free> zstandard_;
  std::size_t state_bytes_;
};

/// Undoes LZF, h5py's filter 32000 (the format of Marc Lehmann's LibLZF).
///
/// The stream is a sequence of items, each of which begins with a byte c. c < 32: the next c + 1
/// bytes, as they are. Else n = (c >> 5) + 2 bytes that were written before, `distance` bytes ago;
/// n = 9 means that a byte to be added to it follows. The next byte is the low half of distance -
/// 1, the low 5 bits of c are its high half. They may overlap with what they become. \returns the
/// bytes that were written to `out`. \throws DamagedChunkError, also if they are more than
/// out.size().
[[nodiscard]] std::size_t undo_lzf(std::span<const std::byte> stream, std::span<std::byte> out);

}  // namespace chunkio::h5
