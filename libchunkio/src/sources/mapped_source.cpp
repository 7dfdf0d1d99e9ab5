#include "sources/mapped_source.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"
#include "io/page_cache.hpp"
#include "sources/row_extents.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {

/// The file, as rows are prefetched from it. A file that does not show its pages would be read
/// ahead even where they are in memory: what is mapped is left out.
class MappedSource::Ahead final : public io::WrappingSource {
 public:
  explicit Ahead(const MappedSource& mapped) : WrappingSource(mapped.local_), mapped_(mapped) {}

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override {
    for (const ByteRange& range : ranges) {
      if (!mapped_.local_->shows_pages() && io::are_mapped(mapped_.map_, range.begin, range.end)) {
        continue;
      }
      mapped_.read_ahead_->start(mapped_.local_, range.begin, range.end);
    }
    return nullptr;
  }

 private:
  const MappedSource& mapped_;
};

MappedSource::MappedSource(std::shared_ptr<const Dataset::Impl> file,
                           std::shared_ptr<const h5::StoredArray> array,
                           std::shared_ptr<io::ReadAhead> read_ahead)
    : file_(std::move(file)),
      array_(std::move(array)),
      local_(io::as_local_file(file_->bytes)),
      read_ahead_(std::move(read_ahead)),
      map_bytes_(static_cast<std::size_t>(local_->size())),
      mapped_(map_bytes_ / kBlockBytes + 1) {
  void* map = ::mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, local_->fd(), 0);
  if (map == MAP_FAILED) {
    throw base::system_error(errno, "map", file_->info.path, "choose the scatter source");
  }
  map_ = static_cast<std::byte*>(map);
  // All that is touched was asked for before. Without this advice, the kernel reads on behind each
  // folio that read_ahead_ brought, in the order of the file and before what comes next here.
  ::madvise(map_, map_bytes_, MADV_RANDOM);
  try {
    guard_.emplace(map_, map_bytes_, local_->fd());
  } catch (...) {
    ::munmap(map_, map_bytes_);
    throw;
  }
}

MappedSource::~MappedSource() {
  guard_.reset();
  ::munmap(map_, map_bytes_);
}

std::int64_t MappedSource::memory_bytes(std::int64_t) const noexcept {
  return static_cast<std::int64_t>(mapped_.size()) +
         (array_->linear_offset ? 0 : array_->index->memory_bytes());
}

std::unique_ptr<const ByteSource> MappedSource::prefetch(const RowGroup& /*group*/,
                                                         const RowRange& wanted) const noexcept {
  return prefetch_rows(Ahead(*this), *array_, wanted);
}

bool MappedSource::is_cached(std::size_t begin, std::size_t end) const {
  if (local_->shows_pages()) return io::are_in_memory(map_ + begin, map_ + end);
  return is_mapped(begin, end) &&
         io::are_mapped(map_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
}

bool MappedSource::is_mapped(std::size_t begin, std::size_t end) const {
  // Pages that were evicted meanwhile fault in one by one, if that ever happens to a part only.
  const auto [first, last] = blocks(begin, end);
  return std::all_of(first, last,
                     [](const auto& block) { return block.load(std::memory_order_relaxed); });
}

bool MappedSource::bring_in(std::size_t begin, std::size_t end, bool cached) const {
  const base::TraceRange range(base::Stage::read);
  if (!cached) {
    read_ahead_->fetch(local_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  }
  const int error = io::map_in(map_ + begin, map_ + end);
  // An older kernel cannot: then the copy faults pages in one by one.
  if (error != 0) return error == EINVAL;
  const auto [first, last] = blocks(begin, end);
  for (auto block = first; block != last; ++block) {
    block->store(true, std::memory_order_relaxed);
  }
  return true;
}

ReadCost MappedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                             std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  bool populated = true;
  std::optional<DamagedRows> damaged;  // what else was copied has to be looked at first
  const bool whole = guard_->read([&] {
    populated = true;
    damaged.reset();
    try {
      for_each_extent(
          *array_, group, rows, cost, [&](std::span<const RowTarget> part, std::int64_t origin) {
            populated = populated && place_extent(part, origin, group.stores, stop, cost);
          });
    } catch (const DamagedRows& error) {
      damaged.emplace(error);
    }
  });
  base::store_fence();
  if (!populated || !whole) {
    throw Error(ErrorCode::io_failed,
                array_->describe_rows(group.first_row + rows.front().row,
                                      group.first_row + rows.back().row, file_->info.path) +
                    " cannot be read: the file was truncated or its disk is failing; copy or "
                    "download it again, and look at the kernel's log");
  }
  file_->check_unchanged();
  if (damaged) throw DamagedRows(*damaged);
  return cost;
}

bool MappedSource::place_extent(std::span<const RowTarget> rows, std::int64_t origin,
                                base::Stores stores, const std::stop_token& stop,
                                ReadCost& cost) const {
  const auto row_bytes = static_cast<std::size_t>(array_->row_bytes);
  const auto offset_of = [&](std::uint32_t row) {
    return static_cast<std::size_t>(origin + std::int64_t{row} * array_->row_bytes);
  };
  base::Stopwatch watch;
  std::size_t begin = 0;
  while (begin < rows.size()) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    const std::size_t end = end_of_close_rows(rows, begin, array_->row_bytes);
    const std::size_t run_begin = offset_of(rows[begin].row);
    const std::size_t run_end = offset_of(rows[end - 1].row) + row_bytes;
    const bool cached = is_cached(run_begin, run_end);
    const bool was_mapped = cached && is_mapped(run_begin, run_end);
    if (!was_mapped && !bring_in(run_begin, run_end, cached)) return false;
    const double seconds = watch.lap();
    (cached ? cost.copy_seconds : cost.read_seconds) += seconds;
    if (cached && !was_mapped) cost.once_seconds += seconds;
    const base::TraceRange range(base::Stage::copy);
    for (std::size_t i = begin; i < end; ++i) {
      base::copy(rows[i].target, map_ + offset_of(rows[i].row), row_bytes, stores);
    }
    cost.copy_seconds += watch.lap();
    cost.bytes_read += static_cast<std::int64_t>(run_end - run_begin);
    begin = end;
  }
  return true;
}

}  // namespace chunkio::sources
