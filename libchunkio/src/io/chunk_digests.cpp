#include "io/chunk_digests.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/digest.hpp"
#include "base/stopwatch.hpp"

namespace chunkio::io {

std::string ChunkDigests::why_not(const Dataset::Impl& file) {
  if (file.info.chunk_digests.empty()) return "it has no digests";
  const h5::StoredArray& images = *file.images;
  const auto rewritten = [](const std::string& how) {
    return "its chunks were rewritten since it was packed (" + how + ")";
  };
  if (!images.needs_libhdf5.empty()) return rewritten(images.needs_libhdf5);
  if (!images.filters.empty()) return rewritten(images.filters.back().name + " filter");
  if (!images.stored.chunked) return rewritten("no chunks");
  if (!images.whole_rows()) return rewritten("chunks cut samples");
  return {};
}

ChunkDigests::ChunkDigests(std::shared_ptr<const Dataset::Impl> file, bool direct_io)
    : file_(std::move(file)),
      reader_(file_, direct_io),
      chunk_bytes_(file_->images->stored.chunk_shape[0] * file_->images->row_bytes),
      piece_bytes_(std::min(reader_.piece_bytes(), chunk_bytes_)) {}

void ChunkDigests::check(
    std::int64_t chunk, const std::stop_token& stop, PlaceCost& cost,
    const std::function<void(std::span<const std::byte>, std::int64_t)>& take) const {
  const h5::StoredArray& images = *file_->images;
  const std::string& path = file_->info.path;
  base::Stopwatch watch;
  h5::ChunkEntry entry;
  if (images.linear_offset) {
    entry = {.file_offset = *images.linear_offset + chunk * chunk_bytes_,
             .stored_bytes = chunk_bytes_};
  } else {
    std::array<std::int64_t, Shape::kMaxRank> coord{chunk};
    entry = images.index->find(std::span(coord).first(images.stored.shape.rank()));
  }
  const auto scratch = scratch_.take(
      [this] { return std::make_unique<base::HostBuffer>(reader_.scratch_bytes(piece_bytes_)); });
  cost.read_seconds += watch.lap();

  base::RunningDigest digest;
  for (std::int64_t at = 0; at < entry.stored_bytes; at += piece_bytes_) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + path + " was stopped");
    }
    std::span<const std::byte> piece;
    try {
      piece = reader_.read(entry.file_offset + at, std::min(piece_bytes_, entry.stored_bytes - at),
                           scratch->bytes(), cost);
    } catch (const Error& error) {
      throw Error(error.code(), images.describe_chunk(chunk, path) + ": " + error.what());
    }
    watch.lap();
    digest.add(piece);
    cost.decode_seconds += watch.lap();
    take(piece, at);
    cost.copy_seconds += watch.lap();
  }
  if (digest.value() != file_->info.chunk_digests[static_cast<std::size_t>(chunk)]) {
    throw Error(ErrorCode::digest_mismatch,
                images.describe_chunk(chunk, path) +
                    " does not match its stored digest; copy or pack the file again");
  }
}

std::int64_t ChunkDigests::memory_bytes(std::int64_t threads) const noexcept {
  return threads * static_cast<std::int64_t>(
                       base::HostBuffer::footprint(reader_.scratch_bytes(piece_bytes_)));
}

}  // namespace chunkio::io
