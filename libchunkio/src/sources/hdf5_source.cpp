#include "sources/hdf5_source.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"
#include "h5/chunk_check.hpp"
#include "h5/library.hpp"
#include "h5/read_rows.hpp"
#include "h5/source_file.hpp"
#include "io/remote_file.hpp"

namespace chunkio::sources {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{32} << 20;

}  // namespace

ReadTime read_rows_through(const ByteSource& bytes, const Dataset::Impl& file,
                           const h5::StoredArray& array, std::int64_t first, std::int64_t count,
                           std::span<std::byte> out, const std::stop_token& stop) {
  const auto guard = h5::Library::lock();
  const h5::SourceFile::Through through(*file.opened, bytes, stop);
  const io::RemoteFile* const remote = io::as_remote_file(*file.bytes);
  if (remote != nullptr && remote->distrusted()) h5::forget_rows(array);
  try {
    h5::read_rows(array, first, count, out, file.info.path);
  } catch (const Error& error) {
    // What libhdf5 says ends with what the source said, but not with what kind of error that is.
    const auto failure = file.opened->take_failure();
    if (failure) throw Error(failure->code(), error.what());
    throw;
  }
  return through.time();
}

Hdf5Source::Hdf5Source(std::shared_ptr<const Dataset::Impl> file,
                       std::shared_ptr<const h5::StoredArray> array,
                       std::shared_ptr<const ByteSource> bytes, std::int64_t group_samples,
                       std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      bytes_(std::move(bytes)),
      scratch_rows_(std::clamp<std::int64_t>(
          kScratchBytes / array_->row_bytes, 1,
          std::clamp<std::int64_t>(group_samples, 1, array_->stored.shape[0]))),
      scratch_(std::move(scratch)) {}

std::int64_t Hdf5Source::memory_bytes(std::int64_t threads) const noexcept {
  const auto scratch =
      base::HostBuffer::footprint(static_cast<std::size_t>(scratch_rows_ * array_->row_bytes));
  return threads * static_cast<std::int64_t>(scratch) + array_->chunk_cache_bytes +
         h5::chunk_check_bytes(*array_) + h5::scaling_bytes(*array_);
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
  Damage damage(group, chunk_rows());
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
    try {
      place_run(group, rows.subspan(begin, end - begin), scratch->bytes(), stop, cost);
    } catch (const Error& error) {
      if (!concerns_stored_bytes(error.code())) throw;
      place_each(group, rows.subspan(begin, end - begin), scratch->bytes(), stop, cost, error,
                 damage);
    }
    begin = end;
  }
  base::store_fence();
  damage.raise(cost);
  return cost;
}

std::int64_t Hdf5Source::chunk_rows() const noexcept {
  return array_->stored.chunked ? array_->stored.chunk_shape[0] : array_->stored.shape[0];
}

void Hdf5Source::place_each(const RowGroup& group, std::span<const RowTarget> rows,
                            std::span<std::byte> scratch, const std::stop_token& stop,
                            ReadCost& cost, const Error& error, Damage& damage) const {
  const auto chunk_of = [&](const RowTarget& row) {
    return (group.first_row + row.row) / chunk_rows();
  };
  if (chunk_of(rows.front()) == chunk_of(rows.back())) {
    damage.add(group.first_row + rows.front().row, error);
    return;
  }
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && chunk_of(rows[end]) == chunk_of(rows[begin])) ++end;
    try {
      place_run(group, rows.subspan(begin, end - begin), scratch, stop, cost);
    } catch (const Error& one) {
      damage.add(group.first_row + rows[begin].row, one);
    }
    begin = end;
  }
}

void Hdf5Source::place_run(const RowGroup& group, std::span<const RowTarget> rows,
                           std::span<std::byte> scratch, const std::stop_token& stop,
                           ReadCost& cost) const {
  const std::int64_t first = rows.front().row;
  const std::int64_t count = rows.back().row - first + 1;
  const auto row_bytes = static_cast<std::size_t>(array_->row_bytes);
  const auto run = scratch.first(static_cast<std::size_t>(count) * row_bytes);
  base::Stopwatch watch;
  ReadTime time;
  try {
    const base::TraceRange range(base::Stage::read);
    time = read_rows_through(*bytes_, *file_, *array_, group.first_row + first, count, run, stop);
  } catch (const Error&) {
    file_->check_unchanged();  // if it was changed meanwhile, that is what happened
    throw;
  }
  file_->check_unchanged();
  const double rest = std::max(watch.lap() - time.waited_seconds - time.copied_seconds, 0.0);
  cost.read_seconds += time.waited_seconds;
  cost.copy_seconds += time.copied_seconds;
  // Waiting while libhdf5 works for another thread, too: for whatever it does there mostly.
  (array_->filters.empty() ? cost.read_seconds : cost.decode_seconds) += rest;
  const base::TraceRange range(base::Stage::copy);
  for (const RowTarget& row : rows) {
    const auto from = static_cast<std::size_t>(row.row - first) * row_bytes;
    base::streaming_copy(row.target, run.data() + from, row_bytes);
  }
  cost.copy_seconds += watch.lap();
  cost.bytes_read += static_cast<std::int64_t>(run.size());
}

}  // namespace chunkio::sources
