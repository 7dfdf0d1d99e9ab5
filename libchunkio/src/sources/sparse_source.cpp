#include "sources/sparse_source.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "sources/row_digests.hpp"
#include "sources/row_offsets.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {

SparseSource::SparseSource(std::shared_ptr<const Dataset::Impl> file,
                           std::shared_ptr<const ByteSource> bytes,
                           std::shared_ptr<base::BufferPool> scratch, std::int64_t group_samples,
                           std::shared_ptr<base::SparseBlocks> blocks, SparseExtents& extents,
                           bool verify)
    : file_(std::move(file)),
      matrix_(*file_->sparse),
      bytes_(std::move(bytes)),
      scratch_(std::move(scratch)),
      blocks_(std::move(blocks)),
      offsets_(file_, matrix_.offsets, bytes_, scratch_),
      indices_(file_, matrix_.indices, bytes_, scratch_),
      values_(file_, matrix_.values, bytes_, scratch_),
      indices_first_(matrix_.indices->linear_offset.value_or(0) <
                     matrix_.values->linear_offset.value_or(0)),
      group_samples_(group_samples) {
  if (verify) {
    RowDigests::require(*file_);
    digests_.emplace(file_, RowDigests::open_digests(*file_), bytes_, scratch_);
  }
  group_offsets_ = scan_offsets(
      offsets_, matrix_.rows, group_samples,
      [this](std::int64_t first, auto offsets) {
        matrix_.check_offsets(first, offsets, file_->info.path);
      },
      [&](std::int64_t length) { extents.rows.add(length); });
  for (std::size_t i = 0; i + 1 < group_offsets_.size(); ++i) {
    extents.groups.add(group_offsets_[i + 1] - group_offsets_[i]);
  }
  file_->check_unchanged();
}

ReadCost SparseSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                             std::stop_token stop) const {
  if (rows.empty()) return {};
  try {
    return place_together(group, rows, stop);
  } catch (const DamagedRows&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt_data && error.code() != ErrorCode::hdf5_failed) throw;
    file_->check_unchanged();
  }
  // Some of them are damaged, and the others need not be lost.
  RowGroup alone = group;
  alone.prefetched = nullptr;
  ReadCost cost;
  DamagedRowList damaged;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end].row == rows[begin].row) ++end;
    try {
      cost += place_together(alone, rows.subspan(begin, end - begin), stop);
    } catch (const DamagedRows& mismatch) {
      cost += mismatch.cost;
      damaged.add(mismatch);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt_data && error.code() != ErrorCode::hdf5_failed) throw;
      const std::int64_t row = group.first_row + rows[begin].row;
      damaged.add({{{row, row + 1}}, error.what(), error.code()});
    }
    begin = end;
  }
  damaged.raise(cost);
  return cost;
}

ReadCost SparseSource::place_together(const RowGroup& group, std::span<const RowTarget> rows,
                                      const std::stop_token& stop) const {
  ReadCost cost;
  for (const RowTarget& row : rows) *reinterpret_cast<base::SparseRow*>(row.target) = {};
  const std::int64_t first = group.first_row + rows.front().row;
  const std::int64_t last = group.first_row + rows.back().row;
  const auto room = scratch_->take(offsets_.room(last - first + 2));
  const std::span<const std::int64_t> offsets =
      as_offsets(offsets_.read(first, last - first + 2, room->bytes(), nullptr, stop, cost));
  matrix_.check_offsets(first, offsets, file_->info.path);

  const auto offset_of = [&](std::int64_t row) {
    return offsets[static_cast<std::size_t>(row - first)];
  };
  const auto row_at = [&](std::size_t i) { return group.first_row + rows[i].row; };
  std::int64_t wanted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].row == rows[i - 1].row) continue;
    wanted += offset_of(row_at(i) + 1) - offset_of(row_at(i));
  }
  const bool all = offsets.back() - offsets.front() <= kMostRead * wanted;
  std::vector<Run> runs;
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    // Rows without entries lie between others for nothing.
    while (end < rows.size() && (all || offset_of(row_at(end - 1) + 1) == offset_of(row_at(end)) ||
                                 rows[end].row == rows[end - 1].row)) {
      ++end;
    }
    const std::int64_t run_first = row_at(begin);
    runs.push_back(
        {.first = run_first,
         .offsets = offsets.subspan(static_cast<std::size_t>(run_first - first),
                                    static_cast<std::size_t>(row_at(end - 1) - run_first) + 2),
         .rows = rows.subspan(begin, end - begin)});
    bytes += room_of(runs.back());
    begin = end;
  }
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  base::SparseBlock& block = blocks_->take(bytes, num_rows);
  try {
    std::span<std::byte> left = block.memory.bytes();
    for (const Run& run : runs) {
      place_run(run, group, left.first(room_of(run)), block, stop, cost);
      left = left.subspan(room_of(run));
    }
  } catch (...) {
    for (const RowTarget& row : rows) *reinterpret_cast<base::SparseRow*>(row.target) = {};
    blocks_->give_back(block);
    throw;
  }
  base::store_fence();
  file_->check_unchanged();
  if (!digests_) return cost;
  std::vector<RowRange> different = mismatches(group, rows, stop, cost);
  if (different.empty()) return cost;
  // Those are not delivered, and may be read again.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!contains(different, row_at(i))) continue;
    *reinterpret_cast<base::SparseRow*>(rows[i].target) = {};
    blocks_->release(block, 1);
  }
  DamagedRows mismatch = RowDigests::mismatch(std::move(different), file_->info.path);
  mismatch.cost = cost;
  throw DamagedRows(mismatch);
}

std::vector<RowRange> SparseSource::mismatches(const RowGroup& group,
                                               std::span<const RowTarget> rows,
                                               const std::stop_token& stop, ReadCost& cost) const {
  const std::int64_t first = group.first_row + rows.front().row;
  const std::int64_t count = group.first_row + rows.back().row - first + 1;
  const auto room = scratch_->take(digests_->room(count));
  const std::span<const std::byte> stored =
      digests_->read(first, count, room->bytes(), nullptr, stop, cost);
  base::Stopwatch watch;
  std::vector<RowRange> different;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].row == rows[i - 1].row) continue;
    const auto& row = *reinterpret_cast<const base::SparseRow*>(rows[i].target);
    const auto bytes_of = [&](const std::byte* begin, const h5::StoredArray& array) {
      return std::span(begin, static_cast<std::size_t>(row.count * array.row_bytes));
    };
    const std::uint64_t digest = base::digest(bytes_of(row.indices, *matrix_.indices),
                                              bytes_of(row.values, *matrix_.values));
    const std::int64_t number = group.first_row + rows[i].row;
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, stored.data() + static_cast<std::size_t>(number - first) * sizeof(wanted),
                sizeof(wanted));
    if (digest != wanted) different.push_back({number, number + 1});
  }
  cost.decode_seconds += watch.lap();
  return different;
}

std::size_t SparseSource::room_of(const Run& run) const noexcept {
  return values_.room(run.num_entries()) + indices_.room(run.num_entries());
}

void SparseSource::place_run(const Run& run, const RowGroup& group, std::span<std::byte> room,
                             base::SparseBlock& block, const std::stop_token& stop,
                             ReadCost& cost) const {
  const std::int64_t begin = run.offsets.front();
  const std::int64_t count = run.num_entries();
  const std::size_t values_room = values_.room(count);
  std::span<const std::byte> values;
  const auto read_values = [&] {
    values = values_.read(begin, count, room.first(values_room), group.prefetched, stop, cost);
  };
  // What is prefetched is read in the order of the file.
  if (!indices_first_) read_values();
  const std::span<const std::byte> indices =
      indices_.read(begin, count, room.subspan(values_room), group.prefetched, stop, cost);
  if (indices_first_) read_values();
  matrix_.check_indices(indices, run.first, group.first_row + run.rows.back().row,
                        file_->info.path);
  for (const RowTarget& row : run.rows) {
    const auto at = static_cast<std::size_t>(group.first_row + row.row - run.first);
    const std::int64_t from = run.offsets[at] - begin;
    *reinterpret_cast<base::SparseRow*>(row.target) = {
        .values = values.data() + from * matrix_.values->row_bytes,
        .indices = indices.data() + from * matrix_.indices->row_bytes,
        .count = run.offsets[at + 1] - run.offsets[at],
        .block = &block};
  }
}

std::unique_ptr<const ByteSource> SparseSource::prefetch(const RowGroup& group,
                                                         const RowRange& wanted) const noexcept {
  // Of a few rows nobody knows yet where they lie.
  if ((wanted.end - wanted.begin) * 2 < group.num_rows) return nullptr;
  try {
    const auto number = static_cast<std::size_t>(group.first_row / group_samples_);
    const RowRange elements = {group_offsets_[number], group_offsets_[number + 1]};
    std::vector<ByteRange> ranges;
    const auto add = [&](std::int64_t offset, std::int64_t size) {
      ranges.push_back({offset, offset + size});
    };
    for_each_stored_range(indices_first_ ? *matrix_.indices : *matrix_.values, elements, add);
    for_each_stored_range(indices_first_ ? *matrix_.values : *matrix_.indices, elements, add);
    return bytes_->prefetch(ranges);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::int64_t SparseSource::memory_bytes(std::int64_t threads) const noexcept {
  const std::int64_t rows = std::min(group_samples_, matrix_.rows);
  const auto offsets = base::HostBuffer::footprint(offsets_.room(rows + 1)) +
                       (digests_ ? base::HostBuffer::footprint(digests_->room(rows)) : 0);
  return threads * static_cast<std::int64_t>(offsets) + values_.memory_bytes(0) +
         indices_.memory_bytes(0) + offsets_.memory_bytes(0) +
         // What a thread takes for one of them at a time.
         std::max({values_.memory_bytes(threads) - values_.memory_bytes(0),
                   indices_.memory_bytes(threads) - indices_.memory_bytes(0),
                   offsets_.memory_bytes(threads) - offsets_.memory_bytes(0)}) +
         static_cast<std::int64_t>(group_offsets_.capacity() * sizeof(std::int64_t));
}

std::int64_t SparseSource::block_bytes(const h5::SparseMatrix& matrix, std::int64_t values,
                                       std::int64_t runs, std::int64_t blocks, bool whole_pages) {
  // Of two arrays: where they begin and end in blocks that are read, or in cache lines.
  const std::int64_t run_bytes = whole_pages ? std::int64_t{6} << 12 : 2 * 64;
  const std::int64_t bytes = values * matrix.entry_bytes() + runs * run_bytes;
  const std::int64_t with_slack =
      bytes + static_cast<std::int64_t>(base::SparseBlocks::slack(static_cast<std::size_t>(bytes)));
  // The system gives whole pages, of large blocks huge ones.
  const auto of_one = static_cast<std::size_t>(with_slack / std::max<std::int64_t>(blocks, 1));
  return with_slack +
         blocks * static_cast<std::int64_t>(base::HostBuffer::footprint(of_one + 1) - of_one);
}

}  // namespace chunkio::sources
