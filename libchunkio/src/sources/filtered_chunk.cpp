#include "sources/filtered_chunk.hpp"

#include <algorithm>

#include "base/host_memory.hpp"
#include "base/stopwatch.hpp"
#include "base/trace.hpp"

namespace chunkio::sources {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

ChunkScratchSizes::ChunkScratchSizes(const h5::StoredArray& array, const io::RangeReader& reader,
                                     std::int64_t piece_bytes) {
  std::size_t most = static_cast<std::size_t>(piece_bytes);
  if (!array.filters.empty()) {
    const h5::ChunkDecoder decoder(array.filters, static_cast<std::size_t>(array.chunk_bytes));
    most = std::max(most, decoder.max_stored_bytes());
    other = decoder.buffer_bytes();
    state = decoder.state_bytes();
  }
  home = whole_pages(reader.scratch_bytes(static_cast<std::int64_t>(most)));
}

std::size_t ChunkScratchSizes::footprint() const noexcept {
  return base::HostBuffer::footprint(home + other) + state;
}

ChunkScratch::ChunkScratch(const h5::StoredArray& array, const ChunkScratchSizes& sizes,
                           std::span<std::byte> buffer)
    : home(buffer.first(sizes.home)), other(buffer.subspan(sizes.home, sizes.other)) {
  if (!array.filters.empty()) {
    decoder.emplace(array.filters, static_cast<std::size_t>(array.chunk_bytes));
  }
}

std::span<const std::byte> read_filtered_chunk(const io::RangeReader& reader,
                                               const h5::ChunkEntry& entry, ChunkScratch& scratch,
                                               const std::stop_token& stop, ReadCost& cost) {
  scratch.decoder->check_stored_bytes(static_cast<std::size_t>(entry.stored_bytes));
  const std::span<const std::byte> stored = reader.read(
      {entry.file_offset, entry.file_offset + entry.stored_bytes}, scratch.home, stop, cost);
  const base::TraceRange range(base::Stage::decode);
  base::Stopwatch watch;
  const std::span<const std::byte> raw =
      scratch.decoder->decode(stored, entry.filter_mask, scratch.home, scratch.other);
  cost.decode_seconds += watch.lap();
  return raw;
}

}  // namespace chunkio::sources
