#include "io/verifying_source.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"

namespace chunkio::io {
namespace {

// Stays in the second-level cache between reading and hashing.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;

std::span<std::byte> scratch() {
  thread_local base::HostBuffer buffer(static_cast<std::size_t>(kPieceBytes));
  return buffer.bytes();
}

}  // namespace

VerifyingSource::VerifyingSource(std::shared_ptr<const Dataset::Impl> file, Verify verify,
                                 std::unique_ptr<ChunkSource> source)
    : file_(std::move(file)),
      verify_(verify),
      source_(std::move(source)),
      matched_(file_->info.chunk_digests.size()) {
  if (file_->info.chunk_digests.empty()) {
    throw Error(ErrorCode::unsupported,
                file_->info.path +
                    " has no digests to compare with; set verify to off (--verify "
                    "off), or pack it with h5pack, which stores them");
  }
}

PlaceCost VerifyingSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                                 std::stop_token stop) const {
  PlaceCost cost = source_->place(group, rows, stop);
  if (rows.empty()) return cost;
  base::Stopwatch watch;
  const std::int64_t chunk_rows = file_->images->stored.chunk_shape[0];
  const std::int64_t last = (group.first_row + rows.back().row) / chunk_rows;
  for (std::int64_t chunk = (group.first_row + rows.front().row) / chunk_rows; chunk <= last;
       ++chunk) {
    std::atomic<bool>& matched = matched_[static_cast<std::size_t>(chunk)];
    if (verify_ == Verify::first_epoch && matched.load(std::memory_order_relaxed)) continue;
    check_chunk(chunk, stop);
    matched.store(true, std::memory_order_relaxed);
  }
  cost.decode_seconds += watch.lap();
  file_->check_unchanged();
  return cost;
}

void VerifyingSource::check_chunk(std::int64_t chunk, const std::stop_token& stop) const {
  const h5::StoredArray& images = *file_->images;
  const std::string& path = file_->info.path;
  h5::ChunkEntry entry;
  if (images.linear_offset) {
    const std::int64_t chunk_bytes = images.stored.chunk_shape[0] * images.row_bytes;
    entry = {.file_offset = *images.linear_offset + chunk * chunk_bytes,
             .stored_bytes = chunk_bytes};
  } else {
    std::array<std::int64_t, Shape::kMaxRank> coord{chunk};
    entry = images.index->find(std::span(coord).first(images.stored.shape.rank()));
  }
  base::RunningDigest digest;
  for (std::int64_t at = 0; at < entry.stored_bytes; at += kPieceBytes) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + path + " was stopped");
    }
    const auto piece =
        scratch().first(static_cast<std::size_t>(std::min(kPieceBytes, entry.stored_bytes - at)));
    base::read_at(file_->descriptor.get(), entry.file_offset + at, piece, path);
    digest.add(piece);
  }
  if (digest.value() != file_->info.chunk_digests[static_cast<std::size_t>(chunk)]) {
    throw Error(ErrorCode::digest_mismatch,
                images.describe_chunk(chunk, path) +
                    " does not match its stored digest; copy or pack the file again");
  }
}

std::int64_t VerifyingSource::memory_bytes(std::int64_t threads) const noexcept {
  return source_->memory_bytes(threads) + threads * kPieceBytes +
         static_cast<std::int64_t>(matched_.size());
}

}  // namespace chunkio::io
