#include "h5/chunk_check.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "h5/chunk_reader.hpp"
#include "h5/filters.hpp"

namespace chunkio::h5 {
namespace {

std::size_t num_chunk_rows(const StoredArray& array) {
  return static_cast<std::size_t>(
      base::ceil_divide(array.stored.shape[0], array.stored.chunk_shape[0]));
}

}  // namespace

bool has_checkable_chunks(const StoredArray& array) noexcept {
  if (array.filters.empty()) return array.stored.chunked && array.index != nullptr;
  return !array.decoded_here && first_foreign_filter(array.filters) == nullptr;
}

std::int64_t chunk_check_bytes(const StoredArray& array) {
  if (!has_checkable_chunks(array) && !array.decoded_here) return 0;
  const auto noted = static_cast<std::int64_t>(num_chunk_rows(array) / 8 + 8);
  if (array.filters.empty()) return noted + array.index->memory_bytes();
  return noted + static_cast<std::int64_t>(ChunkReader::footprint(array));
}

void check_chunks(const StoredArray& array, std::int64_t first, std::int64_t count,
                  const std::string& path) {
  if (count == 0) return;
  array.checked.resize(num_chunk_rows(array));
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  ChunkReader reader(array, path);
  for (std::int64_t chunk = first / chunk_rows; chunk <= (first + count - 1) / chunk_rows;
       ++chunk) {
    if (array.checked[static_cast<std::size_t>(chunk)]) continue;
    if (array.filters.empty()) {
      for_each_column(*array.index, chunk, [&](std::span<const std::int64_t> position) {
        (void)array.index->find(position);
      });
      array.checked[static_cast<std::size_t>(chunk)] = true;
      continue;
    }
    ChunkStart start{static_cast<hsize_t>(chunk * chunk_rows)};
    try {
      do {
        (void)reader.read(start);  // what libhdf5 cannot find it cannot read either
      } while (advance(start, array));
    } catch (const DamagedChunkError& error) {
      throw Error(ErrorCode::corrupt_data, array.describe_chunk(chunk, path) + " is damaged: " +
                                               error.what() + "; copy or download the file again");
    }
    array.checked[static_cast<std::size_t>(chunk)] = true;
  }
}

}  // namespace chunkio::h5
