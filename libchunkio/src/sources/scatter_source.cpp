#include "sources/scatter_source.hpp"

#include <algorithm>
#include <utility>

#include "base/streaming_copy.hpp"
#include "io/range_reader.hpp"
#include "sources/row_extents.hpp"
#include "sources/row_sweep.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {

ScatterSource::ScatterSource(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             std::shared_ptr<const ByteSource> bytes,
                             std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      array_(std::move(array)),
      bytes_(std::move(bytes)),
      scratch_bytes_(io::RangeReader(*bytes_).scratch_bytes(bytes_->request_bytes())),
      scratch_(std::move(scratch)) {}

ReadCost ScatterSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const io::RangeReader reader(group.through(*bytes_), bytes_->request_bytes());
  const auto scratch = scratch_->take(scratch_bytes_);
  try {
    for_each_extent(
        *array_, group, rows, cost, [&](std::span<const RowTarget> part, std::int64_t origin) {
          try {
            sweep_rows(
                reader, {origin, array_->row_bytes}, part, scratch->bytes(), stop, cost,
                [&](const RowTarget& row, std::int64_t from, std::span<const std::byte> bytes) {
                  base::copy(row.target + from, bytes.data(), bytes.size(), group.stores);
                });
          } catch (const Error& error) {
            if (error.code() == ErrorCode::cancelled) throw;
            throw Error(error.code(),
                        array_->describe_rows(group.first_row + part.front().row,
                                              group.first_row + part.back().row, file_->info.path) +
                            ": " + error.what());
          }
        });
  } catch (const DamagedRows&) {
    base::store_fence();
    file_->check_unchanged();
    throw;
  }
  base::store_fence();
  file_->check_unchanged();
  return cost;
}

std::unique_ptr<const ByteSource> ScatterSource::prefetch(const RowGroup& /*group*/,
                                                          const RowRange& wanted) const noexcept {
  return prefetch_rows(*bytes_, *array_, wanted);
}

std::int64_t ScatterSource::memory_bytes(std::int64_t threads) const noexcept {
  return threads * static_cast<std::int64_t>(base::HostBuffer::footprint(scratch_bytes_)) +
         (array_->linear_offset ? 0 : array_->index->memory_bytes());
}

}  // namespace chunkio::sources
