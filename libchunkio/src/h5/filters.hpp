/// Undoing HDF5's filter pipeline without libhdf5, so that chunks decode in parallel.
///
/// Native are what Decompressor knows, byte shuffle and fletcher32, in any number and order. Bit i
/// of a chunk's filter mask says that filter i was skipped when that chunk was written; a reader
/// that ignores it returns wrong pixels.
///
/// Data flow: stored bytes of a chunk -> ChunkDecoder -> raw bytes. No stream, however crafted,
/// writes more than a buffer of known size: what grows beyond the chunk is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "h5/decompressor.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// The first filter that cannot be undone here (another filter, or a shuffle without its element
/// size); null if all can.
[[nodiscard]] const FilterStep* first_foreign_filter(std::span<const FilterStep> filters) noexcept;

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

  /// No stored chunk is larger: the most that any encoder makes of data it cannot compress.
  [[nodiscard]] std::size_t max_stored_bytes() const noexcept { return max_stored_bytes_; }
  /// Bytes of each of the two buffers that decode() works in.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return max_stored_bytes_; }
  /// Bytes that it takes itself, for the memory budget.
  [[nodiscard]] std::size_t state_bytes() const noexcept { return decompressor_.state_bytes(); }

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

 private:
  struct Step {
    int id = 0;
    std::size_t element_bytes = 0;  // of shuffle
  };
  std::vector<Step> steps_;
  std::size_t raw_bytes_ = 0;
  std::size_t max_stored_bytes_ = 0;
  Decompressor decompressor_;
};

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
