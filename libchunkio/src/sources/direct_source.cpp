#include "sources/direct_source.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"
#include "io/direct_file.hpp"
#include "sources/row_part.hpp"
#include "sources/row_sweep.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {
namespace {

constexpr std::size_t kPageBytes = io::kDirectPage;
/// What sources ask for at a time whose bytes are in the page cache, or on their way there.
constexpr std::int64_t kCachedPieceBytes = std::int64_t{512} << 10;
/// Of small chunks that come from there, at a time: a system call more costs less than memory that
/// each thread takes for each array.
constexpr std::int64_t kTogetherBytes = std::int64_t{64} << 10;

}  // namespace

std::optional<std::string> DirectSource::reason_against(const h5::StoredArray& array) {
  if (!array.needs_libhdf5.empty()) return array.needs_libhdf5;
  if (const h5::FilterStep* filter = h5::first_foreign_filter(array.filters)) {
    return filter->name + " filter";
  }
  return std::nullopt;
}

/// Collects the chunks of one call, and reads those that lie close to each other together.
class DirectSource::SmallChunks {
 public:
  /// Chunks that are read before further ones are looked for.
  static constexpr std::size_t kMost = 1024;

  /// \param together  memory for what is read together; `scratch` is that for decoding.
  SmallChunks(const DirectSource& source, const RowGroup& group, std::span<const RowTarget> rows,
              const io::RangeReader& reader, std::span<std::byte> together, ChunkScratch& scratch,
              Damage& damage)
      : source_(source),
        array_(*source.array_),
        group_(group),
        rows_(rows),
        reader_(reader),
        together_(together),
        scratch_(scratch),
        damage_(damage),
        whole_row_(source.part_of(std::span(position_).first(array_.index->grid().size()))) {
    for (const std::int64_t dim : array_.index->grid().subspan(1)) columns_ *= dim;
    const auto columns = static_cast<std::size_t>(std::min<std::int64_t>(columns_, kMost));
    found_.reserve(std::min(rows.size() * columns, kMost));
  }

  /// Takes the chunks that hold rows [first, last) of those of the call, all of row `chunk` of
  /// chunks.
  void add(std::int64_t chunk, std::size_t first, std::size_t last, const std::stop_token& stop,
           ReadCost& cost) {
    std::int64_t column = 0;
    h5::for_each_column(*array_.index, chunk, [&](std::span<const std::int64_t> position) {
      if (found_.size() == kMost) place(stop, cost);
      try {
        add_one(position, {.number = column++,
                           .first = static_cast<std::uint32_t>(first),
                           .last = static_cast<std::uint32_t>(last)});
      } catch (const Error& error) {
        if (error.code() == ErrorCode::io_failed) throw;  // the index cannot be read
        damage_.add(chunk * source_.chunk_rows_, error);
      }
    });
  }

  /// Reads what was found and brings its rows to their places.
  void place(const std::stop_token& stop, ReadCost& cost) {
    const auto before = [](const SmallChunk& a, const SmallChunk& b) {
      return a.range.begin < b.range.begin;
    };
    if (!std::is_sorted(found_.begin(), found_.end(), before)) {
      std::sort(found_.begin(), found_.end(), before);
    }
    for (std::size_t begin = 0; begin < found_.size();) {
      ByteRange range = found_[begin].range;
      std::size_t end = begin + 1;
      while (end < found_.size() && found_[end].range.begin - range.end <= kMaxGapBytes &&
             found_[end].range.end - range.begin <= source_.together_piece_) {
        range.end = std::max(range.end, found_[end++].range.end);
      }
      place_together(std::span(found_).subspan(begin, end - begin), range, stop, cost);
      begin = end;
    }
    found_.clear();
  }

 private:
  void add_one(std::span<const std::int64_t> position, SmallChunk chunk) {
    const h5::ChunkEntry entry = array_.index->find(position);
    if (!entry.allocated()) {
      const RowPart part = source_.part_of(position);
      for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
        part.fill(rows_[i].target, array_.fill_value);
      }
      return;
    }
    chunk.filter_mask = entry.filter_mask;
    chunk.raw = array_.stored_raw(position, entry.filter_mask);
    chunk.range = {entry.file_offset, entry.file_offset + entry.stored_bytes};
    try {
      if (!chunk.raw) {
        scratch_.decoder->check_stored_bytes(static_cast<std::size_t>(entry.stored_bytes));
      } else if (entry.stored_bytes != source_.chunk_bytes_) {
        throw h5::wrong_unfiltered_size(entry.stored_bytes, source_.chunk_bytes_);
      } else {
        const std::int64_t row_bytes = source_.chunk_bytes_ / source_.chunk_rows_;
        const std::int64_t group_row = group_.first_row - position[0] * source_.chunk_rows_;
        chunk.range = {entry.file_offset + (group_row + rows_[chunk.first].row) * row_bytes,
                       entry.file_offset + (group_row + rows_[chunk.last - 1].row + 1) * row_bytes};
      }
    } catch (const h5::DamagedChunkError& error) {
      throw source_.damaged(position[0], error.what());
    }
    found_.push_back(chunk);
  }

  void place_together(std::span<const SmallChunk> chunks, const ByteRange& range,
                      const std::stop_token& stop, ReadCost& cost) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + source_.file_->info.path + " was stopped");
    }
    std::span<const std::byte> bytes;
    try {
      bytes = reader_.read(range, together_, stop, cost);
    } catch (const Error& error) {
      if (!concerns_stored_bytes(error.code())) throw;
      const std::int64_t number = chunk_of(chunks.front());
      if (chunks.size() == 1) {
        const Error named(error.code(), array_.describe_chunk(number, source_.file_->info.path) +
                                            ": " + error.what());
        fail(number, named);
        return;
      }
      for (const SmallChunk& one : chunks)
        place_together(std::span(&one, 1), one.range, stop, cost);
      return;
    }
    base::Stopwatch watch;
    for (const SmallChunk& chunk : chunks) {
      const auto stored =
          bytes.subspan(static_cast<std::size_t>(chunk.range.begin - range.begin),
                        static_cast<std::size_t>(chunk.range.end - chunk.range.begin));
      try {
        place_one(chunk, stored, watch, cost);
      } catch (const h5::DamagedChunkError& error) {
        fail(chunk_of(chunk), source_.damaged(chunk_of(chunk), error.what()));
      }
    }
    cost.copy_seconds += watch.lap();
  }

  void place_one(const SmallChunk& chunk, std::span<const std::byte> stored, base::Stopwatch& watch,
                 ReadCost& cost) {
    std::span<const std::byte> raw = stored;
    std::int64_t first_row = rows_[chunk.first].row;  // of the group, that `raw` begins with
    if (!chunk.raw) {
      const base::TraceRange range(base::Stage::decode);
      raw = scratch_.decoder->decode(stored, chunk.filter_mask, scratch_.home, scratch_.other);
      first_row = chunk_of(chunk) * source_.chunk_rows_ - group_.first_row;
      cost.decode_seconds += watch.lap();
    }
    const base::TraceRange range(base::Stage::copy);
    const auto copy = [&](const RowPart& part) {
      const auto row_bytes = static_cast<std::size_t>(part.stored_bytes());
      for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
        part.copy(
            rows_[i].target, 0,
            raw.subspan(static_cast<std::size_t>(rows_[i].row - first_row) * row_bytes, row_bytes));
      }
    };
    if (columns_ == 1) {
      copy(whole_row_);
    } else {
      copy(source_.part_of(position_of(chunk)));
    }
    if (!chunk.raw) cost.copy_seconds += watch.lap();
  }

  /// Along the first axis.
  [[nodiscard]] std::int64_t chunk_of(const SmallChunk& chunk) const {
    return (group_.first_row + rows_[chunk.first].row) / source_.chunk_rows_;
  }
  [[nodiscard]] std::span<const std::int64_t> position_of(const SmallChunk& chunk) {
    const std::span<const std::int64_t> grid = array_.index->grid();
    std::int64_t number = chunk.number;
    for (std::size_t axis = grid.size() - 1; axis > 0; number /= grid[axis--]) {
      position_[axis] = number % grid[axis];
    }
    position_[0] = chunk_of(chunk);
    return std::span(position_).first(grid.size());
  }
  /// \throws `error` again where it is one of the whole call.
  void fail(std::int64_t chunk, const Error& error) {
    try {
      throw error;  // NOLINT(misc-throw-by-value-catch-by-reference)
    } catch (const Error& thrown) {
      damage_.add(chunk * source_.chunk_rows_, thrown);
    }
  }

  const DirectSource& source_;
  const h5::StoredArray& array_;
  const RowGroup& group_;
  std::span<const RowTarget> rows_;
  const io::RangeReader& reader_;
  std::span<std::byte> together_;
  ChunkScratch& scratch_;
  Damage& damage_;
  std::int64_t columns_ = 1;  // chunks in a row of chunks
  std::array<std::int64_t, Shape::kMaxRank> position_{};
  const RowPart whole_row_;
  std::vector<SmallChunk> found_;
};

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
  const io::RangeReader reader(*bytes_);
  scratch_sizes_.emplace(*array_, reader, piece_bytes_);
  if (chunked() && has_small_chunks(*array_)) {
    // Less where bytes come from memory, and not less than any one of them takes.
    const std::int64_t request = bytes_->request_bytes();
    const bool cached = bytes_->block_bytes() == 1 && request <= kCachedPieceBytes;
    together_piece_ = std::max(cached ? kTogetherBytes : request,
                               static_cast<std::int64_t>(scratch_sizes_->home));
    together_bytes_ =
        (reader.scratch_bytes(together_piece_) + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
}

std::int64_t DirectSource::memory_bytes(std::int64_t threads) const noexcept {
  const std::size_t together = together_bytes_ == 0 ? 0
                                                    : base::HostBuffer::footprint(together_bytes_) +
                                                          SmallChunks::kMost * sizeof(SmallChunk);
  return threads * static_cast<std::int64_t>(scratch_sizes_->footprint() + together) +
         (chunked() ? array_->index->memory_bytes() : 0);
}

ReadCost DirectSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                             std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const auto buffer = scratch_->take(together_bytes_ + scratch_sizes_->bytes());
  const auto together = buffer->bytes().first(together_bytes_);
  ChunkScratch scratch(*array_, *scratch_sizes_, buffer->bytes().subspan(together_bytes_));
  const io::RangeReader reader(group.through(*bytes_), piece_bytes_);
  if (!chunked()) {
    place_linear({group.first_row, rows}, reader, scratch, stop, cost);
  } else {
    Damage damage(group, chunk_rows_);
    std::optional<SmallChunks> small;
    if (together_bytes_ > 0) small.emplace(*this, group, rows, reader, together, scratch, damage);
    for (std::size_t first = 0; first < rows.size();) {
      const std::int64_t chunk = (group.first_row + rows[first].row) / chunk_rows_;
      std::size_t last = first + 1;
      while (last < rows.size() && (group.first_row + rows[last].row) / chunk_rows_ == chunk) {
        ++last;
      }
      if (small) {
        small->add(chunk, first, last, stop, cost);
      } else {
        try {
          h5::for_each_column(*array_->index, chunk, [&](std::span<const std::int64_t> position) {
            place_chunk(position, {group.first_row, rows.subspan(first, last - first)}, reader,
                        scratch, stop, cost);
          });
        } catch (const Error& error) {
          damage.add(chunk * chunk_rows_, error);
        }
      }
      first = last;
    }
    if (small) small->place(stop, cost);
    if (damage.any()) {
      base::store_fence();
      file_->check_unchanged();
      damage.raise(cost);
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
  const RowPart part = part_of(position);
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

RowPart DirectSource::part_of(std::span<const std::int64_t> position) const {
  return {row_shape_, chunk_row_shape_, position.subspan(1),
          static_cast<std::int64_t>(size_of(array_->stored.dtype))};
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
