#include "sources/element_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/element_fill.hpp"
#include "base/stopwatch.hpp"
#include "h5/chunk_check.hpp"
#include "sources/direct_source.hpp"
#include "sources/hdf5_source.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kCacheLine = 64;

}  // namespace

ElementReader::ElementReader(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             std::shared_ptr<const ByteSource> bytes,
                             std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      bytes_(std::move(bytes)),
      scratch_(std::move(scratch)) {
  if (way() != Way::by_chunks) return;
  const io::RangeReader reader(*bytes_);
  scratch_sizes_.emplace(*array_, reader, std::min(reader.piece_bytes(), array_->chunk_bytes));
}

ElementReader::Way ElementReader::way() const noexcept {
  if (DirectSource::reason_against(*array_)) return Way::through_libhdf5;
  return array_->linear_offset ? Way::in_one_run : Way::by_chunks;
}

std::size_t ElementReader::room(std::int64_t count) const noexcept {
  const std::size_t bytes = io::RangeReader(*bytes_).scratch_bytes(count * array_->row_bytes);
  const std::size_t alignment = bytes_->block_bytes() > 1 ? kPage : kCacheLine;
  return (bytes + alignment - 1) / alignment * alignment;
}

std::span<std::byte> ElementReader::read(std::int64_t first, std::int64_t count,
                                         std::span<std::byte> room, const ByteSource* through,
                                         const std::stop_token& stop, ReadCost& cost) const {
  const auto size = static_cast<std::size_t>(count * array_->row_bytes);
  if (count == 0) return room.first(0);
  try {
    const io::RangeReader reader(through != nullptr ? *through : *bytes_);
    switch (way()) {
      case Way::in_one_run: {
        const std::int64_t begin = *array_->linear_offset + first * array_->row_bytes;
        const std::span<std::byte> bytes =
            reader.read({begin, begin + static_cast<std::int64_t>(size)}, room, stop, cost);
        // An array may begin at any byte of a file, and blocks are read from theirs on.
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(array_->stored.dtype) == 0) {
          return bytes;
        }
        std::memmove(room.data(), bytes.data(), size);
        break;
      }
      case Way::by_chunks:
        read_chunks(first, room.first(size), reader, stop, cost);
        break;
      case Way::through_libhdf5: {
        base::Stopwatch watch;
        const ReadTime time =
            read_rows_through(*bytes_, *file_, *array_, first, count, room.first(size), stop);
        cost.read_seconds += time.waited_seconds;
        cost.decode_seconds += std::max(watch.lap() - time.waited_seconds, 0.0);
        cost.bytes_read += static_cast<std::int64_t>(size);
        break;
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    file_->check_unchanged();  // if it was changed meanwhile, that is what happened
    throw;
  }
  return room.first(size);
}

void ElementReader::read_chunks(std::int64_t first, std::span<std::byte> out,
                                const io::RangeReader& reader, const std::stop_token& stop,
                                ReadCost& cost) const {
  const auto buffer = scratch_->take(scratch_sizes_->bytes());
  ChunkScratch scratch(*array_, *scratch_sizes_, buffer->bytes());
  const std::int64_t chunk_elements = array_->stored.chunk_shape[0];
  const std::int64_t size = array_->row_bytes;
  const std::int64_t end = first + static_cast<std::int64_t>(out.size()) / size;
  for (std::int64_t at = first; at < end;) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    const std::array<std::int64_t, 1> position = {at / chunk_elements};
    const std::int64_t chunk_first = position[0] * chunk_elements;
    const std::int64_t part_end = std::min(end, chunk_first + chunk_elements);
    const auto part = out.subspan(static_cast<std::size_t>((at - first) * size),
                                  static_cast<std::size_t>((part_end - at) * size));
    base::Stopwatch watch;
    const h5::ChunkEntry entry = array_->index->find(position);
    cost.read_seconds += watch.lap();
    const std::int64_t skipped = (at - chunk_first) * size;
    try {
      if (!entry.allocated()) {
        base::fill_elements(part, array_->fill_value);
      } else if (array_->stored_raw(position, entry.filter_mask)) {
        if (entry.stored_bytes != array_->chunk_bytes) {
          throw h5::wrong_unfiltered_size(entry.stored_bytes, array_->chunk_bytes);
        }
        const std::int64_t part_begin = entry.file_offset + skipped;
        for (std::size_t done = 0; done < part.size();) {
          const std::size_t piece =
              std::min(part.size() - done, static_cast<std::size_t>(reader.piece_bytes()));
          const std::int64_t from = part_begin + static_cast<std::int64_t>(done);
          const std::span<const std::byte> bytes = reader.read(
              {from, from + static_cast<std::int64_t>(piece)}, scratch.home, stop, cost);
          std::memcpy(part.data() + done, bytes.data(), piece);
          done += piece;
        }
      } else {
        const std::span<const std::byte> raw =
            read_filtered_chunk(reader, entry, scratch, stop, cost);
        std::memcpy(part.data(), raw.data() + skipped, part.size());
      }
    } catch (const h5::DamagedChunkError& error) {
      file_->check_unchanged();
      throw Error(ErrorCode::corrupt_data, array_->describe_chunk(position[0], file_->info.path) +
                                               " is damaged: " + error.what() +
                                               "; copy or download the file again");
    }
    at = part_end;
  }
}

std::int64_t ElementReader::memory_bytes(std::int64_t threads) const noexcept {
  switch (way()) {
    case Way::in_one_run:
      return 0;
    case Way::by_chunks:
      return threads * static_cast<std::int64_t>(scratch_sizes_->footprint()) +
             array_->index->memory_bytes();
    case Way::through_libhdf5:
      return array_->chunk_cache_bytes + h5::chunk_check_bytes(*array_);
  }
  return 0;
}

}  // namespace chunkio::sources
