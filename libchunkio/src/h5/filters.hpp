/// Undoing HDF5's filter pipeline without libhdf5, so that chunks decode in parallel.
///
/// Native are deflate, LZF, byte shuffle and fletcher32, in any number and order. Bit i of a
/// chunk's filter mask says that filter i was skipped when that chunk was written; a reader that
/// ignores it returns wrong pixels.
///
/// Data flow: stored bytes of a chunk -> ChunkDecoder -> raw bytes. Nothing is allocated for a
/// chunk, and no stream, however crafted, writes more than a buffer of known size: what grows
/// beyond the chunk is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "h5/stored_array.hpp"

struct libdeflate_decompressor;

namespace chunkio::h5 {

/// The first filter that cannot be undone here (another filter, or a shuffle without its element
/// size); null if all can.
[[nodiscard]] const FilterStep* first_foreign_filter(std::span<const FilterStep> filters) noexcept;

/// A chunk that cannot be what was written. what() is a clause about it: "its deflate stream is
/// damaged".
class DamagedChunkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A chunk that was left unfiltered and does not take `raw_bytes` in the file.
[[nodiscard]] DamagedChunkError wrong_unfiltered_size(std::int64_t stored_bytes,
                                                      std::int64_t raw_bytes);

/// Undoes the pipeline of one dataset. Owns a decompressor and no buffers: one for each concurrent
/// caller.
class ChunkDecoder {
 public:
  /// \param filters    in the order of writing.
  /// \param raw_bytes  exact size of a chunk before the pipeline.
  /// \pre first_foreign_filter(filters) is null.
  /// \throws Error out_of_resources.
  ChunkDecoder(std::span<const FilterStep> filters, std::size_t raw_bytes);
  ~ChunkDecoder();
  ChunkDecoder(ChunkDecoder&& other) noexcept;
  ChunkDecoder& operator=(ChunkDecoder&& other) noexcept;

  /// No stored chunk is larger: the most that any encoder makes of data it cannot compress.
  [[nodiscard]] std::size_t max_stored_bytes() const noexcept { return max_stored_bytes_; }
  /// Bytes of each of the two buffers that decode() works in.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return max_stored_bytes_; }

  /// \throws DamagedChunkError if a stored chunk cannot be that large; decode() does, too.
  void check_stored_bytes(std::size_t size) const;

  /// Undoes all filters but those in `mask`.
  ///
  /// \param stored  the stored bytes; they lie in `home` (anywhere) or in neither buffer, and are
  ///                unspecified afterwards if they lie in `home`.
  /// \param home, other  buffer_bytes() or more each; disjoint.
  /// \returns the raw_bytes of the chunk, inside `home`, `other` or, where nothing had to be moved,
  ///          `stored`.
  /// \throws DamagedChunkError.
  std::span<const std::byte> decode(std::span<const std::byte> stored, std::uint32_t mask,
                                    std::span<std::byte> home, std::span<std::byte> other);

  /// Bytes of a decompressor, for the memory budget.
  static constexpr std::size_t kStateBytes = std::size_t{32} << 10;

 private:
  struct Step {
    int id = 0;
    std::size_t element_bytes = 0;  // of shuffle
  };
  struct FreeDecompressor {
    void operator()(libdeflate_decompressor* decompressor) const noexcept;
  };

  [[nodiscard]] std::span<const std::byte> inflate(std::span<const std::byte> stream,
                                                   std::size_t max_bytes,
                                                   std::span<std::byte> out) const;

  std::vector<Step> steps_;
  std::size_t raw_bytes_ = 0;
  std::size_t max_stored_bytes_ = 0;
  std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor_;
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

/// HDF5's variant of Fletcher's checksum (H5_checksum_fletcher32): of big-endian 16-bit words, an
/// odd last byte being the high half of one.
[[nodiscard]] std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept;

/// Undoes the byte shuffle: `in` holds byte 0 of every element, then byte 1 of every element, ...,
/// then what is left of a last fractional element. Uses SSE2 for elements of 2, 4 and 8 bytes.
/// \pre in.size() == out.size(); disjoint; element_bytes >= 1.
void unshuffle(std::span<const std::byte> in, std::size_t element_bytes,
               std::span<std::byte> out) noexcept;
/// The same in portable code, for other machines and element sizes.
void unshuffle_portable(std::span<const std::byte> in, std::size_t element_bytes,
                        std::span<std::byte> out) noexcept;

}  // namespace chunkio::h5
