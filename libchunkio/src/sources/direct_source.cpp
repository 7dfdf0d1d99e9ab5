#include "sources/direct_source.hpp"

#include <algorithm>
#include <utility>

#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"
#include "sources/row_part.hpp"
#include "sources/row_sweep.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {

std::optional<std::string> DirectSource::reason_against(const h5::StoredArray& array) {
  if (!array.needs_libhdf5.empty()) return array.needs_libhdf5;
  if (const h5::FilterStep* filter = h5::first_foreign_filter(array.filters)) {
    return filter->name + " filter";
  }
  return std::nullopt;
}

DirectSource::DirectSource(std::shared_ptr<const Dataset::Impl> file,
                           std::shared_ptr<const h5::StoredArray> array,
                           std::shared_ptr<const ByteSource> bytes,
                           std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      bytes_(std::move(bytes)),
      scratch_(std::move(scratch)) {
  if (const auto reason = reason_against(*array_)) {
    throw Error(ErrorCode::unsupported, file_->info.path + ": the direct source cannot read " +
                                            array_->name + " (" + *reason +
                                            "); use the hdf5 source, or let it be chosen");
  }
  piece_bytes_ = bytes_->request_bytes();
  if (chunked()) {
    const StoredLayout& stored = array_->stored;
    const auto element_bytes = static_cast<std::int64_t>(size_of(stored.dtype));
    row_shape_ = stored.shape.without_first_axis();
    chunk_row_shape_ = stored.chunk_shape.without_first_axis();
    chunk_rows_ = stored.chunk_shape[0];
    chunk_bytes_ = stored.chunk_shape.num_elements() * element_bytes;
    piece_bytes_ = std::min(piece_bytes_, chunk_bytes_);
  }
  scratch_sizes_.emplace(*array_, io::RangeReader(*bytes_), piece_bytes_);
}

std::int64_t DirectSource::memory_bytes(std::int64_t threads) const noexcept {
  return threads * static_cast<std::int64_t>(scratch_sizes_->footprint()) +
         (chunked() ? array_->index->memory_bytes() : 0);
}

ReadCost DirectSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                             std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const auto buffer = scratch_->take(scratch_sizes_->bytes());
  ChunkScratch scratch(*array_, *scratch_sizes_, buffer->bytes());
  const io::RangeReader reader(group.through(*bytes_), piece_bytes_);
  if (!chunked()) {
    place_linear({group.first_row, rows}, reader, scratch, stop, cost);
  } else {
    for (std::size_t first = 0; first < rows.size();) {
      const std::int64_t chunk = (group.first_row + rows[first].row) / chunk_rows_;
      std::size_t last = first + 1;
      while (last < rows.size() && (group.first_row + rows[last].row) / chunk_rows_ == chunk) {
        ++last;
      }
      for_each_column(*array_->index, chunk, [&](std::span<const std::int64_t> position) {
        place_chunk(position, {group.first_row, rows.subspan(first, last - first)}, reader, scratch,
                    stop, cost);
      });
      first = last;
    }
  }
  base::store_fence();
  file_->check_unchanged();
  return cost;
}

void DirectSource::place_linear(const Wanted& wanted, const io::RangeReader& reader,
                                ChunkScratch& scratch, const std::stop_token& stop,
                                ReadCost& cost) const {
  const std::int64_t row_bytes = array_->row_bytes;
  try {
    sweep_rows(reader, {*array_->linear_offset + wanted.group_first_row * row_bytes, row_bytes},
               wanted.rows, scratch.home, stop, cost,
               [](const RowTarget& row, std::int64_t from, std::span<const std::byte> bytes) {
                 base::streaming_copy(row.target + from, bytes.data(), bytes.size());
               });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    throw Error(
        error.code(),
        array_->describe_rows(wanted.group_first_row + wanted.rows.front().row,
                              wanted.group_first_row + wanted.rows.back().row, file_->info.path) +
            ": " + error.what());
  }
}

void DirectSource::place_chunk(std::span<const std::int64_t> position, const Wanted& wanted,
                               const io::RangeReader& reader, ChunkScratch& scratch,
                               const std::stop_token& stop, ReadCost& cost) const {
  if (stop.stop_requested()) {
    throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
  }
  base::Stopwatch watch;
  const h5::ChunkEntry entry = array_->index->find(position);
  cost.read_seconds += watch.lap();
  const RowPart part(row_shape_, chunk_row_shape_, position.subspan(1),
                     static_cast<std::int64_t>(size_of(array_->stored.dtype)));
  // Row 0 of the group, counted from the first row of the chunk; negative if it lies before it.
  const std::int64_t group_row = wanted.group_first_row - position[0] * chunk_rows_;

  if (!entry.allocated()) {
    for (const RowTarget& row : wanted.rows) part.fill(row.target, array_->fill_value);
    cost.copy_seconds += watch.lap();
    return;
  }
  try {
    if (array_->stored_raw(position, entry.filter_mask)) {
      if (entry.stored_bytes != chunk_bytes_) {
        throw h5::wrong_unfiltered_size(entry.stored_bytes, chunk_bytes_);
      }
      const std::int64_t row_bytes = part.stored_bytes();
      sweep_rows(reader, {entry.file_offset + group_row * row_bytes, row_bytes}, wanted.rows,
                 scratch.home, stop, cost,
                 [&](const RowTarget& row, std::int64_t from, std::span<const std::byte> bytes) {
                   part.copy(row.target, from, bytes);
                 });
      return;
    }
    const std::span<const std::byte> raw = read_filtered_chunk(reader, entry, scratch, stop, cost);
    watch.lap();
    const base::TraceRange range(base::Stage::copy);
    const auto row_bytes = static_cast<std::size_t>(part.stored_bytes());
    for (const RowTarget& row : wanted.rows) {
      part.copy(row.target, 0,
                raw.subspan(static_cast<std::size_t>(group_row + row.row) * row_bytes, row_bytes));
    }
    cost.copy_seconds += watch.lap();
  } catch (const h5::DamagedChunkError& error) {
    throw damaged(position[0], error.what());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    throw Error(error.code(),
                array_->describe_chunk(position[0], file_->info.path) + ": " + error.what());
  }
}

Error DirectSource::damaged(std::int64_t chunk, const std::string& reason) const {
  // If the file was changed meanwhile, that is what happened.
  file_->check_unchanged();
  return Error(ErrorCode::corrupt_data, array_->describe_chunk(chunk, file_->info.path) +
                                            " is damaged: " + reason +
                                            "; copy or download the file again");
}

std::unique_ptr<const ByteSource> DirectSource::prefetch(const RowGroup& /*group*/,
                                                         const RowRange& wanted) const noexcept {
  return prefetch_rows(*bytes_, *array_, wanted);
}

}  // namespace chunkio::sources
