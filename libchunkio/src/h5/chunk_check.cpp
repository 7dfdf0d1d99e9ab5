#include "h5/chunk_check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/host_memory.hpp"
#include "h5/error_stack.hpp"
#include "h5/filters.hpp"
#include "h5/stored_chunk.hpp"

namespace chunkio::h5 {
namespace {

using Coordinates = std::array<hsize_t, Shape::kMaxRank>;

/// Reads and decodes chunks; its memory is reserved with the first.
class Checker {
 public:
  Checker(const StoredArray& array, const std::string& path) : array_(array), path_(path) {}

  /// \param start  first element of the chunk, along each axis.
  void check(const Coordinates& start) {
    hsize_t stored_bytes = 0;
    // Fails if no chunk has storage, or the index is damaged: then reading fails, too.
    if (H5Dget_chunk_storage_size(array_.dataset.get(), start.data(), &stored_bytes) < 0) return;
    // No storage, or a chunk that claims to take none: libhdf5 tells them apart when it reads.
    if (stored_bytes == 0 && !is_stored(start)) return;
    if (!array_.partial_chunks_filtered && is_partial(start)) {
      if (stored_bytes != static_cast<hsize_t>(array_.chunk_bytes)) {
        throw wrong_unfiltered_size(static_cast<std::int64_t>(stored_bytes), array_.chunk_bytes);
      }
      return;
    }
    reserve();
    decoder_->check_stored_bytes(static_cast<std::size_t>(stored_bytes));
    const auto home = buffer_.bytes().first(decoder_->buffer_bytes());
    std::uint32_t mask = 0;
    check_status(read_stored_chunk(array_.dataset.get(), start.data(), mask, home),
                 "read the chunk of rows " + std::to_string(start[0]) + " to " +
                     std::to_string(last_row(start)) + " of " + printable(array_.name) + " in",
                 path_);
    (void)decoder_->decode(home.first(static_cast<std::size_t>(stored_bytes)), mask, home,
                           buffer_.bytes().subspan(home.size()));
  }

 private:
  [[nodiscard]] bool is_stored(const Coordinates& start) const noexcept {
    std::uint32_t mask = 0;
    std::array<std::byte, 1> nothing{};
    return read_stored_chunk(array_.dataset.get(), start.data(), mask,
                             std::span(nothing).first(0)) >= 0;
  }
  [[nodiscard]] bool is_partial(const Coordinates& start) const {
    for (std::size_t axis = 0; axis < array_.stored.shape.rank(); ++axis) {
      if (static_cast<std::int64_t>(start[axis]) + array_.stored.chunk_shape[axis] >
          array_.stored.shape[axis]) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::int64_t last_row(const Coordinates& start) const {
    return std::min(static_cast<std::int64_t>(start[0]) + array_.stored.chunk_shape[0],
                    array_.stored.shape[0]) -
           1;
  }
  void reserve() {
    if (decoder_) return;
    decoder_.emplace(array_.filters, static_cast<std::size_t>(array_.chunk_bytes));
    buffer_ = base::HostBuffer(2 * decoder_->buffer_bytes());
  }

  const StoredArray& array_;
  const std::string& path_;
  std::optional<ChunkDecoder> decoder_;
  base::HostBuffer buffer_;
};

/// The next chunk along all axes but the first. \returns false after the last.
bool advance(Coordinates& start, const StoredArray& array) {
  for (std::size_t axis = array.stored.shape.rank() - 1; axis > 0; --axis) {
    start[axis] += static_cast<hsize_t>(array.stored.chunk_shape[axis]);
    if (start[axis] < static_cast<hsize_t>(array.stored.shape[axis])) return true;
    start[axis] = 0;
  }
  return false;
}

std::size_t num_chunk_rows(const StoredArray& array) {
  return static_cast<std::size_t>(
      base::ceil_divide(array.stored.shape[0], array.stored.chunk_shape[0]));
}

}  // namespace

bool has_checkable_chunks(const StoredArray& array) noexcept {
  return !array.filters.empty() && first_foreign_filter(array.filters) == nullptr;
}

std::int64_t chunk_check_bytes(const StoredArray& array) {
  if (!has_checkable_chunks(array)) return 0;
  const ChunkDecoder decoder(array.filters, static_cast<std::size_t>(array.chunk_bytes));
  return static_cast<std::int64_t>(base::HostBuffer::footprint(2 * decoder.buffer_bytes()) +
                                   ChunkDecoder::kStateBytes + num_chunk_rows(array) / 8 + 8);
}

void check_chunks(const StoredArray& array, std::int64_t first, std::int64_t count,
                  const std::string& path) {
  if (count == 0) return;
  array.checked.resize(num_chunk_rows(array));
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  Checker checker(array, path);
  for (std::int64_t chunk = first / chunk_rows; chunk <= (first + count - 1) / chunk_rows;
       ++chunk) {
    if (array.checked[static_cast<std::size_t>(chunk)]) continue;
    Coordinates start{static_cast<hsize_t>(chunk * chunk_rows)};
    try {
      do {
        checker.check(start);
      } while (advance(start, array));
    } catch (const DamagedChunk& error) {
      throw Error(ErrorCode::corrupt_data, array.describe_chunk(chunk, path) + " is damaged: " +
                                               error.what() + "; copy or download the file again");
    }
    array.checked[static_cast<std::size_t>(chunk)] = true;
  }
}

}  // namespace chunkio::h5
