#include "sources/verifying_source.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/streaming_copy.hpp"

namespace chunkio::sources {
namespace {

/// \throws Error unsupported if the digests cannot be compared.
std::shared_ptr<const Dataset::Impl> checked(std::shared_ptr<const Dataset::Impl> file) {
  const std::string reason = ChunkDigests::why_not(*file);
  if (reason.empty()) return file;
  throw Error(ErrorCode::unsupported,
              file->info.path + ": " + reason +
                  ", so its chunks cannot be compared with digests; set verify = off, or "
                  "pack it with h5pack, which stores them",
              "verify = off");
}

}  // namespace

VerifyingSource::VerifyingSource(std::shared_ptr<const Dataset::Impl> file, Verify verify,
                                 std::unique_ptr<ChunkSource> source,
                                 std::shared_ptr<const ByteSource> bytes,
                                 std::shared_ptr<base::BufferPool> scratch)
    : file_(checked(std::move(file))),
      verify_(verify),
      source_(std::move(source)),
      digests_(file_, std::move(bytes), std::move(scratch)),
      matched_(static_cast<std::size_t>(digests_.num_chunks())) {}

ReadCost VerifyingSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                                std::stop_token stop) const {
  ReadCost cost;
  const std::int64_t chunk_rows = digests_.chunk_rows();
  bool read = false;
  Damage damage(group, chunk_rows);
  for (std::size_t first = 0; first < rows.size();) {
    const std::int64_t chunk = (group.first_row + rows[first].row) / chunk_rows;
    std::size_t last = first + 1;
    while (last < rows.size() && (group.first_row + rows[last].row) / chunk_rows == chunk) ++last;
    const auto wanted = rows.subspan(first, last - first);
    std::atomic<bool>& matched = matched_[static_cast<std::size_t>(chunk)];
    try {
      if (verify_ == Verify::first_epoch && matched.load(std::memory_order_relaxed)) {
        cost += source_->place(group, wanted, stop);
      } else {
        read = true;
        place_checked(chunk, group, wanted, stop, cost);
        matched.store(true, std::memory_order_relaxed);
      }
    } catch (const Error& error) {
      damage.add(chunk * chunk_rows, error);
    }
    first = last;
  }
  if (read) {
    base::store_fence();
    file_->check_unchanged();
  }
  damage.raise(cost);
  return cost;
}

void VerifyingSource::place_checked(std::int64_t chunk, const RowGroup& group,
                                    std::span<const RowTarget> rows, const std::stop_token& stop,
                                    ReadCost& cost) const {
  const std::int64_t row_bytes = file_->leading->row_bytes;
  const std::int64_t chunk_first_row = chunk * digests_.chunk_rows();
  std::size_t first = 0;  // of the rows that are not complete yet
  const auto take = [&](std::span<const std::byte> piece, std::int64_t at) {
    const std::int64_t end = at + static_cast<std::int64_t>(piece.size());
    for (std::size_t i = first; i < rows.size(); ++i) {
      const std::int64_t row = (group.first_row + rows[i].row - chunk_first_row) * row_bytes;
      if (row >= end) break;
      const std::int64_t from = std::max(row, at);
      const std::int64_t to = std::min(row + row_bytes, end);
      base::streaming_copy(rows[i].target + (from - row), piece.data() + (from - at),
                           static_cast<std::size_t>(to - from));
      if (row + row_bytes <= end) first = i + 1;
    }
  };
  digests_.check(chunk, group.prefetched, stop, cost, take);
}

std::int64_t VerifyingSource::memory_bytes(std::int64_t threads) const noexcept {
  return source_->memory_bytes(threads) + digests_.memory_bytes(threads) +
         static_cast<std::int64_t>(matched_.size());
}

}  // namespace chunkio::sources
