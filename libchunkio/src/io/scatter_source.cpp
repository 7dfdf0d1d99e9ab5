#include "io/scatter_source.hpp"

#include <utility>

#include "base/streaming_copy.hpp"
#include "io/row_extents.hpp"
#include "io/row_sweep.hpp"
#include "io/stored_ranges.hpp"

namespace chunkio::io {

ScatterSource::ScatterSource(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array, bool direct_io,
                             std::shared_ptr<ReadAhead> read_ahead,
                             std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      reader_(file_, direct_io),
      read_ahead_(std::move(read_ahead)),
      scratch_(std::move(scratch)) {}

ReadCost ScatterSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  GroupReader reader(reader_);
  const auto scratch = scratch_->take(reader_.scratch_bytes(reader_.piece_bytes()));
  try {
    for_each_extent(
        *array_, group, rows, cost, [&](std::span<const RowTarget> part, std::int64_t origin) {
          sweep_rows(
              reader, {origin, array_->row_bytes}, part, reader_.piece_bytes(), scratch->bytes(),
              stop, cost,
              [&](const RowTarget& row, std::int64_t from, std::span<const std::byte> bytes) {
                base::copy(row.target + from, bytes.data(), bytes.size(), group.stores);
              });
        });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    throw Error(error.code(),
                array_->describe_rows(group.first_row + rows.front().row,
                                      group.first_row + rows.back().row, file_->info.path) +
                    ": " + error.what());
  }
  base::store_fence();
  file_->check_unchanged();
  return cost;
}

void ScatterSource::prefetch(const RowGroup& /*group*/, const RowRange& wanted) const noexcept {
  if (reader_.direct()) return;
  for_each_stored_range(*array_, wanted, [this](std::int64_t offset, std::int64_t bytes) {
    read_ahead_->start(file_, offset, offset + bytes);
  });
}

std::int64_t ScatterSource::memory_bytes(std::int64_t threads) const noexcept {
  const auto scratch = base::HostBuffer::footprint(reader_.scratch_bytes(reader_.piece_bytes()));
  return threads * static_cast<std::int64_t>(scratch) +
         (array_->linear_offset ? 0 : array_->index->memory_bytes());
}

}  // namespace chunkio::io
