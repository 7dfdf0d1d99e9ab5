#include "io/scatter_source.hpp"

#include <algorithm>
#include <utility>

#include "base/host_memory.hpp"
#include "base/streaming_copy.hpp"

namespace chunkio::io {
namespace {

// Half of a common second-level cache: the piece must still be there when its rows are copied out.
constexpr std::int64_t kPieceBytes = std::int64_t{512} << 10;
// Reading over a hole this small costs less than another system call and a broken read-ahead.
constexpr std::int64_t kHoleBytes = std::int64_t{64} << 10;

std::span<std::byte> scratch() {
  thread_local base::HostBuffer buffer(static_cast<std::size_t>(kPieceBytes));
  return buffer.bytes();
}

}  // namespace

ScatterSource::ScatterSource(std::shared_ptr<const Dataset::Impl> dataset)
    : dataset_(std::move(dataset)), sample_bytes_(dataset_->info.sample_bytes()) {}

PlaceCost ScatterSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                               std::stop_token stop) const {
  PlaceCost cost;
  std::size_t begin = 0;
  while (begin < rows.size()) {
    std::size_t end = begin + 1;
    while (end < rows.size() &&
           (std::int64_t{rows[end].row} - std::int64_t{rows[end - 1].row} - 1) * sample_bytes_ <=
               kHoleBytes) {
      ++end;
    }
    cost.bytes_read += place_run(group.first_row, rows.subspan(begin, end - begin), stop);
    begin = end;
  }
  base::store_fence();
  dataset_->check_unchanged();
  return cost;
}

std::int64_t ScatterSource::place_run(std::int64_t first_row, std::span<const RowTarget> rows,
                                      std::stop_token stop) const {
  const DatasetInfo& info = dataset_->info;
  const std::int64_t run_begin =
      *dataset_->linear_offset + (first_row + rows.front().row) * sample_bytes_;
  const std::int64_t run_end =
      *dataset_->linear_offset + (first_row + rows.back().row + 1) * sample_bytes_;
  // Pieces of whole rows where rows are small; a row larger than the piece is copied in parts.
  const std::int64_t piece_bytes =
      sample_bytes_ < kPieceBytes ? kPieceBytes / sample_bytes_ * sample_bytes_ : kPieceBytes;

  std::size_t first = 0;  // the first row that reaches into the current piece or beyond
  for (std::int64_t piece = run_begin; piece < run_end; piece += piece_bytes) {
    if (stop.stop_requested())
      throw Error(ErrorCode::cancelled, "reading " + info.path + " was stopped");
    const std::int64_t piece_end = std::min(piece + piece_bytes, run_end);
    const std::span<std::byte> bytes = scratch().first(static_cast<std::size_t>(piece_end - piece));
    base::read_at(dataset_->descriptor.get(), piece, bytes, info.path);

    for (std::size_t i = first; i < rows.size(); ++i) {
      const std::int64_t row_begin =
          *dataset_->linear_offset + (first_row + rows[i].row) * sample_bytes_;
      const std::int64_t row_end = row_begin + sample_bytes_;
      if (row_begin >= piece_end) break;
      const std::int64_t from = std::max(row_begin, piece);
      const std::int64_t to = std::min(row_end, piece_end);
      base::streaming_copy(rows[i].target + (from - row_begin), bytes.data() + (from - piece),
                           static_cast<std::size_t>(to - from));
      if (row_end <= piece_end) first = i + 1;
    }
  }
  return run_end - run_begin;
}

std::int64_t ScatterSource::memory_bytes(std::int64_t threads) const noexcept {
  return threads * kPieceBytes;
}

}  // namespace chunkio::io
