#include "h5/chunk_reader.hpp"

#include <algorithm>

#include "h5/error_stack.hpp"
#include "h5/stored_chunk.hpp"

namespace chunkio::h5 {

bool advance(ChunkStart& start, const StoredArray& array) {
  for (std::size_t axis = array.stored.shape.rank() - 1; axis > 0; --axis) {
    start[axis] += static_cast<hsize_t>(array.stored.chunk_shape[axis]);
    if (start[axis] < static_cast<hsize_t>(array.stored.shape[axis])) return true;
    start[axis] = 0;
  }
  return false;
}

std::optional<std::span<const std::byte>> ChunkReader::read(const ChunkStart& start) {
  hsize_t stored_bytes = 0;
  // Fails if no chunk has storage, or the index is damaged.
  if (H5Dget_chunk_storage_size(array_.dataset.get(), start.data(), &stored_bytes) < 0) {
    return std::nullopt;
  }
  // No storage, or a chunk that claims to take none.
  if (stored_bytes == 0 && !is_stored(start)) return std::nullopt;
  const bool unfiltered = !array_.partial_chunks_filtered && is_partial(start);
  if (unfiltered && stored_bytes != static_cast<hsize_t>(array_.chunk_bytes)) {
    throw wrong_unfiltered_size(static_cast<std::int64_t>(stored_bytes), array_.chunk_bytes);
  }
  reserve();
  decoder_->check_stored_bytes(static_cast<std::size_t>(stored_bytes));
  const auto home = buffer_.bytes().first(decoder_->buffer_bytes());
  std::uint32_t mask = 0;
  check_status(read_stored_chunk(array_.dataset.get(), start.data(), mask, home),
               "read the chunk of rows " + std::to_string(start[0]) + " to " +
                   std::to_string(last_row(start)) + " of " + printable(array_.name) + " in",
               path_);
  const auto stored = home.first(static_cast<std::size_t>(stored_bytes));
  if (unfiltered) return stored;
  return decoder_->decode(stored, mask, home, buffer_.bytes().subspan(home.size()));
}

std::span<std::byte> ChunkReader::room() {
  reserve();
  return buffer_.bytes().first(static_cast<std::size_t>(array_.chunk_bytes));
}

std::size_t ChunkReader::footprint(const StoredArray& array) {
  const ChunkDecoder decoder(array.filters, static_cast<std::size_t>(array.chunk_bytes));
  return base::HostBuffer::footprint(2 * decoder.buffer_bytes()) + decoder.state_bytes();
}

bool ChunkReader::is_stored(const ChunkStart& start) const noexcept {
  std::uint32_t mask = 0;
  std::array<std::byte, 1> nothing{};
  return read_stored_chunk(array_.dataset.get(), start.data(), mask, std::span(nothing).first(0)) >=
         0;
}

bool ChunkReader::is_partial(const ChunkStart& start) const {
  for (std::size_t axis = 0; axis < array_.stored.shape.rank(); ++axis) {
    if (static_cast<std::int64_t>(start[axis]) + array_.stored.chunk_shape[axis] >
        array_.stored.shape[axis]) {
      return true;
    }
  }
  return false;
}

std::int64_t ChunkReader::last_row(const ChunkStart& start) const {
  return std::min(static_cast<std::int64_t>(start[0]) + array_.stored.chunk_shape[0],
                  array_.stored.shape[0]) -
         1;
}

void ChunkReader::reserve() {
  if (decoder_) return;
  decoder_.emplace(array_.filters, static_cast<std::size_t>(array_.chunk_bytes));
  buffer_ = base::HostBuffer(2 * decoder_->buffer_bytes());
}

}  // namespace chunkio::h5
