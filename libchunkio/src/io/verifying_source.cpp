#include "io/verifying_source.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"

namespace chunkio::io {
namespace {

/// Why the stored chunks cannot be those that were hashed, as a clause; empty if they may be.
std::string why_rewritten(const h5::StoredArray& images) {
  if (!images.needs_libhdf5.empty()) return images.needs_libhdf5;
  if (!images.filters.empty()) return images.filters.back().name + " filter";
  if (!images.stored.chunked) return "no chunks";
  if (!images.whole_rows()) return "chunks cut samples";
  return {};
}

}  // namespace

VerifyingSource::VerifyingSource(std::shared_ptr<const Dataset::Impl> file, Verify verify,
                                 std::unique_ptr<ChunkSource> source, bool direct_io)
    : file_(std::move(file)),
      verify_(verify),
      source_(std::move(source)),
      reader_(file_, direct_io),
      matched_(file_->info.chunk_digests.size()) {
  if (file_->info.chunk_digests.empty()) {
    throw Error(ErrorCode::unsupported,
                file_->info.path +
                    " has no digests to compare with; set verify to off (--verify "
                    "off), or pack it with h5pack, which stores them");
  }
  const h5::StoredArray& images = *file_->images;
  if (const std::string reason = why_rewritten(images); !reason.empty()) {
    throw Error(ErrorCode::unsupported,
                file_->info.path + ": its chunks were rewritten since it was packed (" + reason +
                    "), so its digests cannot be compared; set verify to off (--verify off)");
  }
  chunk_bytes_ = images.stored.chunk_shape[0] * images.row_bytes;
  piece_bytes_ = std::min(reader_.piece_bytes(), chunk_bytes_);
}

PlaceCost VerifyingSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                                 std::stop_token stop) const {
  PlaceCost cost;
  const std::int64_t chunk_rows = file_->images->stored.chunk_shape[0];
  bool read = false;
  for (std::size_t first = 0; first < rows.size();) {
    const std::int64_t chunk = (group.first_row + rows[first].row) / chunk_rows;
    std::size_t last = first + 1;
    while (last < rows.size() && (group.first_row + rows[last].row) / chunk_rows == chunk) ++last;
    const auto wanted = rows.subspan(first, last - first);
    std::atomic<bool>& matched = matched_[static_cast<std::size_t>(chunk)];
    if (verify_ == Verify::first_epoch && matched.load(std::memory_order_relaxed)) {
      cost += source_->place(group, wanted, stop);
    } else {
      place_checked(chunk, group.first_row, wanted, stop, cost);
      matched.store(true, std::memory_order_relaxed);
      read = true;
    }
    first = last;
  }
  if (read) {
    base::store_fence();
    file_->check_unchanged();
  }
  return cost;
}

void VerifyingSource::place_checked(std::int64_t chunk, std::int64_t group_first_row,
                                    std::span<const RowTarget> rows, const std::stop_token& stop,
                                    PlaceCost& cost) const {
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
  std::size_t first = 0;  // of the rows that are not complete yet
  for (std::int64_t at = 0; at < entry.stored_bytes; at += piece_bytes_) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + path + " was stopped");
    }
    const std::int64_t end = std::min(at + piece_bytes_, entry.stored_bytes);
    std::span<const std::byte> piece;
    try {
      piece = reader_.read(entry.file_offset + at, end - at, scratch->bytes(), cost);
    } catch (const Error& error) {
      throw Error(error.code(), images.describe_chunk(chunk, path) + ": " + error.what());
    }
    watch.lap();
    digest.add(piece);
    cost.decode_seconds += watch.lap();
    for (std::size_t i = first; i < rows.size(); ++i) {
      const std::int64_t row =
          (group_first_row + rows[i].row) * images.row_bytes - chunk * chunk_bytes_;
      if (row >= end) break;
      const std::int64_t from = std::max(row, at);
      const std::int64_t to = std::min(row + images.row_bytes, end);
      base::streaming_copy(rows[i].target + (from - row), piece.data() + (from - at),
                           static_cast<std::size_t>(to - from));
      if (row + images.row_bytes <= end) first = i + 1;
    }
    cost.copy_seconds += watch.lap();
  }
  if (digest.value() != file_->info.chunk_digests[static_cast<std::size_t>(chunk)]) {
    throw Error(ErrorCode::digest_mismatch,
                images.describe_chunk(chunk, path) +
                    " does not match its stored digest; copy or pack the file again");
  }
}

std::int64_t VerifyingSource::memory_bytes(std::int64_t threads) const noexcept {
  const auto scratch = base::HostBuffer::footprint(reader_.scratch_bytes(piece_bytes_));
  return source_->memory_bytes(threads) + threads * static_cast<std::int64_t>(scratch) +
         static_cast<std::int64_t>(matched_.size());
}

}  // namespace chunkio::io
