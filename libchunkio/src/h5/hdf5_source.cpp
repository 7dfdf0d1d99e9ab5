#include "h5/hdf5_source.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/streaming_copy.hpp"

namespace chunkio::h5 {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{32} << 20;
/// Unwanted bytes between two wanted rows that are read anyway: a call of H5Dread costs some 10
/// microseconds, in which this much is copied.
constexpr std::int64_t kMaxGapBytes = std::int64_t{64} << 10;

}  // namespace

/// One scratch buffer, taken from the pool and returned to it: as many exist as threads were ever
/// here at once.
class Hdf5Source::ScratchLease {
 public:
  explicit ScratchLease(const Hdf5Source& source) : source_(source) {
    {
      const std::lock_guard lock(source_.scratch_mutex_);
      if (!source_.scratch_.empty()) {
        buffer_ = std::move(source_.scratch_.back());
        source_.scratch_.pop_back();
        return;
      }
      // Room to return it, so that the destructor cannot fail.
      source_.scratch_.reserve(source_.scratch_.capacity() + 1);
    }
    buffer_ =
        base::HostBuffer(static_cast<std::size_t>(source_.scratch_rows_ * source_.sample_bytes_));
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;
  ~ScratchLease() {
    const std::lock_guard lock(source_.scratch_mutex_);
    source_.scratch_.push_back(std::move(buffer_));
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return buffer_.bytes(); }

 private:
  const Hdf5Source& source_;
  base::HostBuffer buffer_;
};

Hdf5Source::Hdf5Source(std::shared_ptr<const Dataset::Impl> dataset, std::int64_t group_samples)
    : dataset_(std::move(dataset)),
      sample_bytes_(dataset_->info.sample_bytes()),
      scratch_rows_(std::clamp<std::int64_t>(
          kScratchBytes / sample_bytes_, 1,
          std::clamp<std::int64_t>(group_samples, 1, dataset_->info.num_samples))) {}

std::int64_t Hdf5Source::memory_bytes(std::int64_t threads) const noexcept {
  const auto scratch =
      base::HostBuffer::footprint(static_cast<std::size_t>(scratch_rows_ * sample_bytes_));
  return threads * static_cast<std::int64_t>(scratch) + dataset_->chunk_cache_bytes;
}

PlaceCost Hdf5Source::place(const RowGroup& group, std::span<const RowTarget> rows,
                            std::stop_token stop) const {
  PlaceCost cost;
  if (rows.empty()) return cost;
  const ScratchLease scratch(*this);
  std::unique_lock<std::mutex> large_group;
  if (dataset_->chunk_cache_bytes > 0 && group.num_rows > scratch_rows_) {
    large_group = std::unique_lock(large_group_mutex_);
  }
  for (std::size_t begin = 0; begin < rows.size();) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + dataset_->info.path + " was stopped");
    }
    std::size_t end = begin + 1;
    while (end < rows.size() && std::int64_t{rows[end].row} - rows[begin].row < scratch_rows_ &&
           (std::int64_t{rows[end].row} - rows[end - 1].row - 1) * sample_bytes_ <= kMaxGapBytes) {
      ++end;
    }
    const auto run = rows.subspan(begin, end - begin);
    place_run(group, run, scratch.bytes());
    cost.bytes_read += (std::int64_t{run.back().row} - run.front().row + 1) * sample_bytes_;
    begin = end;
  }
  base::store_fence();
  return cost;
}

void Hdf5Source::place_run(const RowGroup& group, std::span<const RowTarget> rows,
                           std::span<std::byte> scratch) const {
  const std::int64_t first = rows.front().row;
  const std::int64_t count = rows.back().row - first + 1;
  const DatasetInfo& info = dataset_->info;
  const auto run = scratch.first(static_cast<std::size_t>(count * sample_bytes_));
  read_rows(dataset_->images, info.stored.shape, DType::uint8, group.first_row + first, count, run,
            info.images_path, info.path);
  dataset_->check_unchanged();
  for (const RowTarget& row : rows) {
    const auto from = static_cast<std::size_t>((row.row - first) * sample_bytes_);
    base::streaming_copy(row.target, run.data() + from, static_cast<std::size_t>(sample_bytes_));
  }
}

}  // namespace chunkio::h5
