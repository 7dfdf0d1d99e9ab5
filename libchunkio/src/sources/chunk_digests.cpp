#include "sources/chunk_digests.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/checked_math.hpp"
#include "base/stopwatch.hpp"
#include "base/trace.hpp"
#include "h5/filters.hpp"
#include "io/range_reader.hpp"
#include "sources/hdf5_source.hpp"
#include "sources/ranges_text.hpp"

namespace chunkio::sources {
namespace {

/// Of a piece of images that have no chunks of their own.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

/// Whether chunks can be read without libhdf5, and have whole rows.
bool has_own_chunks(const h5::StoredArray& images) {
  return images.stored.chunked && images.whole_rows() && images.needs_libhdf5.empty() &&
         h5::first_foreign_filter(images.filters) == nullptr;
}

/// Whether rows lie in one run behind each other, without chunks.
bool is_one_run(const h5::StoredArray& images) {
  return !images.stored.chunked && images.linear_offset.has_value();
}

std::int64_t rows_together(const h5::StoredArray& images) {
  if (images.stored.chunked) return images.stored.chunk_shape[0];
  return std::clamp<std::int64_t>(kPieceBytes / images.row_bytes, 1, images.stored.shape[0]);
}

}  // namespace

/// The digests of what was read of one chunk.
class ChunkDigests::Comparison {
 public:
  Comparison(const ChunkDigests& digests, std::int64_t chunk)
      : digests_(digests), chunk_(chunk), rows_(digests.file_->leading->row_bytes) {}

  /// Takes bytes of the chunk, one piece behind the other.
  void add(std::span<const std::byte> bytes) {
    const base::TraceRange range(base::Stage::verify);
    if (!digests_.samples_) {
      whole_.add(bytes);
      return;
    }
    // What other programs leave in rows beyond the last one is not looked at.
    const std::size_t left = used_bytes() - seen_bytes_;
    bytes = bytes.first(std::min(bytes.size(), left));
    seen_bytes_ += bytes.size();
    rows_.add(bytes);
  }

  /// Rows of the chunk that are not what was packed.
  [[nodiscard]] std::vector<RowRange> differing(const std::stop_token& stop) {
    const RowRange all = digests_.rows_of(chunk_);
    if (digests_.samples_) return digests_.samples_->differing(all.begin, rows_.values(), stop);
    const std::uint64_t stored =
        digests_.file_->info.chunk_digests[static_cast<std::size_t>(chunk_)];
    if (whole_.value() == stored) return {};
    return {all};
  }

  /// Bytes of the rows that the dataset has.
  [[nodiscard]] std::size_t used_bytes() const {
    const RowRange rows = digests_.rows_of(chunk_);
    return static_cast<std::size_t>((rows.end - rows.begin) * digests_.file_->leading->row_bytes);
  }

 private:
  const ChunkDigests& digests_;
  std::int64_t chunk_;
  base::RunningDigest whole_;
  base::RowDigests rows_;
  std::size_t seen_bytes_ = 0;
};

std::string ChunkDigests::why_not(const Dataset::Impl& file) {
  if (!file.info.digests_cover.empty()) return {};
  if (file.info.chunk_digests.empty()) return "it has no digests";
  const h5::StoredArray& images = *file.leading;
  const auto rewritten = [](const std::string& how) {
    return "its chunks were rewritten since it was packed (" + how + ")";
  };
  if (!images.needs_libhdf5.empty()) return rewritten(images.needs_libhdf5);
  if (const h5::FilterStep* filter = h5::first_foreign_filter(images.filters)) {
    return rewritten(filter->name + " filter");
  }
  if (!images.stored.chunked) return rewritten("no chunks");
  if (!images.whole_rows()) return rewritten("chunks cut samples");
  if (std::cmp_not_equal(file.info.chunk_digests.size(), file.info.num_chunks)) {
    return rewritten("other chunks");
  }
  return {};
}

ChunkDigests::ChunkDigests(std::shared_ptr<const Dataset::Impl> file,
                           std::shared_ptr<const ByteSource> bytes,
                           std::shared_ptr<base::BufferPool> scratch)
    : file_(std::move(file)),
      bytes_(std::move(bytes)),
      chunk_rows_(rows_together(*file_->leading)),
      chunk_bytes_(chunk_rows_ * file_->leading->row_bytes),
      num_chunks_(base::ceil_divide(file_->leading->stored.shape[0], chunk_rows_)),
      piece_bytes_(std::min(bytes_->request_bytes(), chunk_bytes_)),
      scratch_(std::move(scratch)) {
  const h5::StoredArray& images = *file_->leading;
  if (!file_->info.digests_cover.empty()) samples_.emplace(file_);
  if (has_own_chunks(images) || is_one_run(images)) {
    scratch_sizes_.emplace(images, io::RangeReader(*bytes_), piece_bytes_);
  } else {
    piece_bytes_ =
        std::clamp(kPieceBytes / images.row_bytes, std::int64_t{1}, chunk_rows_) * images.row_bytes;
  }
}

RowRange ChunkDigests::rows_of(std::int64_t chunk) const noexcept {
  return {chunk * chunk_rows_, std::min((chunk + 1) * chunk_rows_, file_->info.num_samples)};
}

bool ChunkDigests::linear() const noexcept {
  return file_->leading->linear_offset && file_->leading->stored.chunked;
}

void ChunkDigests::drop_from_cache() const noexcept {
  if (samples_) samples_->drop_from_cache();
}

std::string ChunkDigests::describe(std::int64_t chunk) const {
  const h5::StoredArray& images = *file_->leading;
  if (images.stored.chunked) return images.describe_chunk(chunk, file_->info.path);
  const RowRange rows = rows_of(chunk);
  return images.describe_rows(rows.begin, rows.end - 1, file_->info.path);
}

void ChunkDigests::check(std::int64_t chunk, const ByteSource* prefetched,
                         const std::stop_token& stop, ReadCost& cost, const Take& take) const {
  const h5::StoredArray& images = *file_->leading;
  const io::RangeReader reader(prefetched != nullptr ? *prefetched : *bytes_, piece_bytes_);
  Comparison comparison(*this, chunk);
  std::vector<RowRange> different;
  try {
    if (read_by_libhdf5()) {
      read_rows(chunk, stop, cost, comparison, take);
    } else {
      base::Stopwatch watch;
      const h5::ChunkEntry entry = find(chunk);
      const auto buffer = scratch_->take(scratch_sizes_->bytes());
      ChunkScratch scratch(images, *scratch_sizes_, buffer->bytes());
      cost.read_seconds += watch.lap();
      if (!entry.allocated()) throw h5::DamagedChunkError("it has no storage");
      const std::array<std::int64_t, 1> row = {chunk};
      if (images.filters.empty() || images.stored_raw(row, entry.filter_mask)) {
        read_pieces(reader, chunk, entry, scratch, stop, cost, comparison, take);
      } else {
        read_filtered(reader, entry, scratch, stop, cost, comparison, take);
      }
    }
    base::Stopwatch watch;
    different = comparison.differing(stop);
    cost.decode_seconds += watch.lap();
  } catch (const h5::DamagedChunkError& error) {
    throw Error(ErrorCode::corrupt_data,
                describe(chunk) + " is damaged: " + error.what() + "; copy or pack the file again");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    throw Error(error.code(), describe(chunk) + ": " + error.what());
  }
  if (different.empty()) return;
  const bool one = is_one_row(different);
  const std::string message = samples_ ? describe(chunk) + ": " + ranges_text("sample", different) +
                                             (one ? " does not match its stored digest"
                                                  : " do not match their stored digests")
                                       : describe(chunk) + " does not match its stored digest";
  throw DamagedRows(std::move(different), message + "; copy or pack the file again");
}

bool ChunkDigests::matches(std::int64_t first, std::int64_t count, std::span<const std::byte> bytes,
                           const std::stop_token& stop) const {
  if (!samples_) {
    const auto size = static_cast<std::size_t>(chunk_bytes_);
    for (std::int64_t i = 0; i < count; ++i) {
      if (base::digest(bytes.subspan(static_cast<std::size_t>(i) * size, size)) !=
          file_->info.chunk_digests[static_cast<std::size_t>(first + i)]) {
        return false;
      }
    }
    return true;
  }
  const std::int64_t begin = rows_of(first).begin;
  const std::int64_t end = rows_of(first + count - 1).end;
  const std::int64_t row_bytes = file_->leading->row_bytes;
  base::RowDigests rows(row_bytes);
  rows.add(bytes.first(static_cast<std::size_t>((end - begin) * row_bytes)));
  return samples_->differing(begin, rows.values(), stop).empty();
}

h5::ChunkEntry ChunkDigests::find(std::int64_t chunk) const {
  const h5::StoredArray& images = *file_->leading;
  if (images.linear_offset) {
    const RowRange rows = rows_of(chunk);
    return {.file_offset = *images.linear_offset + chunk * chunk_bytes_,
            .stored_bytes =
                images.stored.chunked ? chunk_bytes_ : (rows.end - rows.begin) * images.row_bytes};
  }
  std::array<std::int64_t, Shape::kMaxRank> coord{chunk};
  return images.index->find(std::span(coord).first(images.stored.shape.rank()));
}

/// A chunk that is stored as it is.
void ChunkDigests::read_pieces(const io::RangeReader& reader, std::int64_t chunk,
                               const h5::ChunkEntry& entry, ChunkScratch& scratch,
                               const std::stop_token& stop, ReadCost& cost, Comparison& comparison,
                               const Take& take) const {
  const RowRange rows = rows_of(chunk);
  const std::int64_t expected = file_->leading->stored.chunked
                                    ? chunk_bytes_
                                    : (rows.end - rows.begin) * file_->leading->row_bytes;
  if (entry.stored_bytes != expected) {
    throw h5::wrong_unfiltered_size(entry.stored_bytes, expected);
  }
  const std::int64_t piece_bytes = reader.piece_bytes();
  base::Stopwatch watch;
  for (std::int64_t at = 0; at < entry.stored_bytes; at += piece_bytes) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    const std::span<const std::byte> piece =
        reader.read({entry.file_offset + at,
                     entry.file_offset + std::min(at + piece_bytes, entry.stored_bytes)},
                    scratch.home, stop, cost);
    watch.lap();
    comparison.add(piece);
    cost.decode_seconds += watch.lap();
    const base::TraceRange range(base::Stage::copy);
    take(piece, at);
    cost.copy_seconds += watch.lap();
  }
}

void ChunkDigests::read_filtered(const io::RangeReader& reader, const h5::ChunkEntry& entry,
                                 ChunkScratch& scratch, const std::stop_token& stop, ReadCost& cost,
                                 Comparison& comparison, const Take& take) const {
  const std::span<const std::byte> raw = read_filtered_chunk(reader, entry, scratch, stop, cost);
  base::Stopwatch watch;
  // What other programs leave in rows beyond the last one is not looked at.
  const auto used = raw.first(comparison.used_bytes());
  comparison.add(used);
  if (!samples_) comparison.add(std::vector<std::byte>(raw.size() - used.size()));
  cost.decode_seconds += watch.lap();
  const base::TraceRange range(base::Stage::copy);
  take(used, 0);
  cost.copy_seconds += watch.lap();
}

/// Rows that libhdf5 alone can read.
void ChunkDigests::read_rows(std::int64_t chunk, const std::stop_token& stop, ReadCost& cost,
                             Comparison& comparison, const Take& take) const {
  const h5::StoredArray& images = *file_->leading;
  const RowRange rows = rows_of(chunk);
  const std::int64_t rows_at_once = piece_bytes_ / images.row_bytes;
  const auto buffer = scratch_->take(static_cast<std::size_t>(piece_bytes_));
  base::Stopwatch watch;
  for (std::int64_t row = rows.begin; row < rows.end; row += rows_at_once) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    const std::int64_t count = std::min(rows_at_once, rows.end - row);
    const auto piece = buffer->bytes().first(static_cast<std::size_t>(count * images.row_bytes));
    read_rows_through(*bytes_, *file_, images, row, count, piece, stop);
    cost.bytes_read += static_cast<std::int64_t>(piece.size());
    cost.read_seconds += watch.lap();
    comparison.add(piece);
    cost.decode_seconds += watch.lap();
    take(piece, (row - rows.begin) * images.row_bytes);
    cost.copy_seconds += watch.lap();
  }
}

std::int64_t ChunkDigests::memory_bytes(std::int64_t threads) const noexcept {
  const std::int64_t scratch = scratch_sizes_
                                   ? static_cast<std::int64_t>(scratch_sizes_->footprint())
                                   : piece_bytes_ + file_->leading->chunk_cache_bytes;
  return threads * (scratch + chunk_rows_ * std::int64_t{2 * sizeof(std::uint64_t)}) +
         (samples_ ? samples_->memory_bytes() : 0);
}

}  // namespace chunkio::sources
