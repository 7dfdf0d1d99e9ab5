#include "io/chunk_digests.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/stopwatch.hpp"
#include "base/trace.hpp"
#include "h5/filters.hpp"

namespace chunkio::io {

std::string ChunkDigests::why_not(const Dataset::Impl& file) {
  if (file.info.chunk_digests.empty()) return "it has no digests";
  const h5::StoredArray& images = *file.images;
  const auto rewritten = [](const std::string& how) {
    return "its chunks were rewritten since it was packed (" + how + ")";
  };
  if (!images.needs_libhdf5.empty()) return rewritten(images.needs_libhdf5);
  if (const h5::FilterStep* filter = h5::first_foreign_filter(images.filters)) {
    return rewritten(filter->name + " filter");
  }
  if (!images.stored.chunked) return rewritten("no chunks");
  if (!images.whole_rows()) return rewritten("chunks cut samples");
  if (std::cmp_not_equal(file.info.chunk_digests.size(), file.info.num_chunks)) {
    return rewritten("other chunks");
  }
  return {};
}

ChunkDigests::ChunkDigests(std::shared_ptr<const Dataset::Impl> file, bool direct_io,
                           std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      reader_(file_, direct_io),
      chunk_bytes_(file_->images->stored.chunk_shape[0] * file_->images->row_bytes),
      piece_bytes_(std::min(reader_.piece_bytes(), chunk_bytes_)),
      scratch_sizes_(*file_->images, reader_, piece_bytes_),
      scratch_(std::move(scratch)) {}

void ChunkDigests::check(std::int64_t chunk, const std::stop_token& stop, PlaceCost& cost,
                         const Take& take) const {
  const h5::StoredArray& images = *file_->images;
  const std::string& path = file_->info.path;
  base::Stopwatch watch;
  const h5::ChunkEntry entry = find(chunk);
  const auto buffer = scratch_->take(scratch_sizes_.bytes());
  ChunkScratch scratch(images, scratch_sizes_, buffer->bytes());
  cost.read_seconds += watch.lap();
  std::uint64_t digest = 0;
  try {
    if (!entry.allocated()) throw h5::DamagedChunk("it has no storage");
    const std::array<std::int64_t, 1> row = {chunk};
    digest = images.filters.empty() || images.stored_raw(row, entry.filter_mask)
                 ? read_pieces(entry, scratch, stop, cost, take)
                 : read_filtered(chunk, entry, scratch, cost, take);
  } catch (const h5::DamagedChunk& error) {
    throw Error(ErrorCode::corrupt_data, images.describe_chunk(chunk, path) + " is damaged: " +
                                             error.what() + "; copy or pack the file again");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    throw Error(error.code(), images.describe_chunk(chunk, path) + ": " + error.what());
  }
  if (digest != file_->info.chunk_digests[static_cast<std::size_t>(chunk)]) {
    throw Error(ErrorCode::digest_mismatch,
                images.describe_chunk(chunk, path) +
                    " does not match its stored digest; copy or pack the file again");
  }
}

h5::ChunkEntry ChunkDigests::find(std::int64_t chunk) const {
  const h5::StoredArray& images = *file_->images;
  if (images.linear_offset) {
    return {.file_offset = *images.linear_offset + chunk * chunk_bytes_,
            .stored_bytes = chunk_bytes_};
  }
  std::array<std::int64_t, Shape::kMaxRank> coord{chunk};
  return images.index->find(std::span(coord).first(images.stored.shape.rank()));
}

/// A chunk that is stored as it is.
std::uint64_t ChunkDigests::read_pieces(const h5::ChunkEntry& entry, ChunkScratch& scratch,
                                        const std::stop_token& stop, PlaceCost& cost,
                                        const Take& take) const {
  if (entry.stored_bytes != chunk_bytes_) {
    throw h5::wrong_unfiltered_size(entry.stored_bytes, chunk_bytes_);
  }
  base::Stopwatch watch;
  base::RunningDigest digest;
  for (std::int64_t at = 0; at < entry.stored_bytes; at += piece_bytes_) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    const std::span<const std::byte> piece =
        reader_.read(entry.file_offset + at, std::min(piece_bytes_, entry.stored_bytes - at),
                     scratch.home, cost);
    watch.lap();
    {
      const base::TraceRange range(base::Stage::verify);
      digest.add(piece);
    }
    cost.decode_seconds += watch.lap();
    const base::TraceRange range(base::Stage::copy);
    take(piece, at);
    cost.copy_seconds += watch.lap();
  }
  return digest.value();
}

std::uint64_t ChunkDigests::read_filtered(std::int64_t chunk, const h5::ChunkEntry& entry,
                                          ChunkScratch& scratch, PlaceCost& cost,
                                          const Take& take) const {
  const h5::StoredArray& images = *file_->images;
  const std::span<const std::byte> raw = read_filtered_chunk(reader_, entry, scratch, cost);
  base::Stopwatch watch;
  // What other programs leave in rows beyond the last one is not looked at.
  const std::int64_t rows = std::min(images.stored.chunk_shape[0],
                                     images.stored.shape[0] - chunk * images.stored.chunk_shape[0]);
  const auto used = static_cast<std::size_t>(rows * images.row_bytes);
  base::RunningDigest digest;
  {
    const base::TraceRange range(base::Stage::verify);
    digest.add(raw.first(used));
    const std::vector<std::byte> unused(raw.size() - used);
    digest.add(unused);
  }
  cost.decode_seconds += watch.lap();
  const base::TraceRange range(base::Stage::copy);
  take(raw.first(used), 0);
  cost.copy_seconds += watch.lap();
  return digest.value();
}

std::int64_t ChunkDigests::memory_bytes(std::int64_t threads) const noexcept {
  return threads * static_cast<std::int64_t>(scratch_sizes_.footprint());
}

}  // namespace chunkio::io
