#include "h5/hdf5_source.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"
#include "h5/chunk_check.hpp"
#include "h5/read_rows.hpp"

namespace chunkio::h5 {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{32} << 20;

}  // namespace

Hdf5Source::Hdf5Source(std::shared_ptr<const Dataset::Impl> file,
                       std::shared_ptr<const StoredArray> array, std::int64_t group_samples,
                       std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      scratch_rows_(std::clamp<std::int64_t>(
          kScratchBytes / array_->row_bytes, 1,
          std::clamp<std::int64_t>(group_samples, 1, array_->stored.shape[0]))),
      scratch_(std::move(scratch)) {}

std::int64_t Hdf5Source::memory_bytes(std::int64_t threads) const noexcept {
  const auto scratch =
      base::HostBuffer::footprint(static_cast<std::size_t>(scratch_rows_ * array_->row_bytes));
  return threads * static_cast<std::int64_t>(scratch) + array_->chunk_cache_bytes +
         chunk_check_bytes(*array_) + scaling_bytes(*array_);
}

ReadCost Hdf5Source::place(const RowGroup& group, std::span<const RowTarget> rows,
                           std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const auto scratch = scratch_->take(static_cast<std::size_t>(scratch_rows_ * array_->row_bytes));
  std::unique_lock<std::mutex> large_group;
  if (array_->chunk_cache_bytes > 0 && group.num_rows > scratch_rows_) {
    large_group = std::unique_lock(large_group_mutex_);
  }
  for (std::size_t begin = 0; begin < rows.size();) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    std::size_t end = begin + 1;
    while (end < rows.size() && std::int64_t{rows[end].row} - rows[begin].row < scratch_rows_ &&
           (std::int64_t{rows[end].row} - rows[end - 1].row - 1) * array_->row_bytes <=
               kMaxGapBytes) {
      ++end;
    }
    place_run(group, rows.subspan(begin, end - begin), scratch->bytes(), cost);
    begin = end;
  }
  base::store_fence();
  return cost;
}

void Hdf5Source::place_run(const RowGroup& group, std::span<const RowTarget> rows,
                           std::span<std::byte> scratch, ReadCost& cost) const {
  const std::int64_t first = rows.front().row;
  const std::int64_t count = rows.back().row - first + 1;
  const auto row_bytes = static_cast<std::size_t>(array_->row_bytes);
  const auto run = scratch.first(static_cast<std::size_t>(count) * row_bytes);
  base::Stopwatch watch;
  try {
    const base::TraceRange range(base::Stage::read);
    read_rows(*array_, group.first_row + first, count, run, file_->info.path);
  } catch (const Error&) {
    file_->check_unchanged();  // if it was changed meanwhile, that is what happened
    throw;
  }
  file_->check_unchanged();
  // What libhdf5 waits for and what it decodes cannot be told apart from here.
  (array_->filters.empty() ? cost.read_seconds : cost.decode_seconds) += watch.lap();
  const base::TraceRange range(base::Stage::copy);
  for (const RowTarget& row : rows) {
    const auto from = static_cast<std::size_t>(row.row - first) * row_bytes;
    base::streaming_copy(row.target, run.data() + from, row_bytes);
  }
  cost.copy_seconds += watch.lap();
  cost.bytes_read += static_cast<std::int64_t>(run.size());
}

}  // namespace chunkio::h5
