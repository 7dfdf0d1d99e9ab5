#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "base/chunk_source.hpp"
#include "base/host_memory.hpp"
#include "base/run_on_threads.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/shard_set.hpp"
#include "io/ask_again.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"
#include "io/range_reader.hpp"
#include "sources/chunk_digests.hpp"
#include "sources/row_digests.hpp"

namespace chunkio {
namespace {

constexpr std::int64_t kDefaultThreads = 8;
constexpr std::int64_t kMaxThreads = 1024;

void check_options(const VerifyOptions& options) {
  if (options.num_threads >= 0 && options.num_threads <= kMaxThreads) return;
  throw Error(ErrorCode::invalid_argument, "num_threads must be from 0 to " +
                                               std::to_string(kMaxThreads) + ", got " +
                                               std::to_string(options.num_threads));
}

void check_stop(const VerifyOptions& options, const std::string& path) {
  if (!options.stop.stop_requested()) return;
  throw Error(ErrorCode::cancelled, "verifying " + path + " was stopped");
}

/// Whether the error is about the file and not about this process.
bool is_damage(ErrorCode code) {
  switch (code) {
    case ErrorCode::digest_mismatch:
    case ErrorCode::io_failed:
    case ErrorCode::corrupt_data:
    case ErrorCode::unsupported:
    case ErrorCode::hdf5_failed:
      return true;
    default:
      return false;
  }
}

DamagedChunk damaged_chunk(std::int64_t chunk, const RowRange& rows, const Error& error) {
  const auto* mismatch = dynamic_cast<const DamagedRows*>(&error);
  return {.chunk = chunk,
          .rows = rows,
          .damaged_rows = mismatch != nullptr ? mismatch->rows() : std::vector<RowRange>{rows},
          .code = error.code(),
          .reason = error.what()};
}

/// Chunks are taken in runs, in file order, by whichever thread is free.
class ChunkVerification {
 public:
  ChunkVerification(std::shared_ptr<const Dataset::Impl> file, const VerifyOptions& options)
      : file_(std::move(file)),
        options_(options),
        bytes_(io::direct_if_possible(file_->bytes)),
        digests_(file_, bytes_),
        reader_(*bytes_),
        num_chunks_(digests_.num_chunks()),
        run_chunks_(digests_.linear()
                        ? std::max<std::int64_t>(io::kDirectPieceBytes / digests_.chunk_bytes(), 1)
                        : 1) {
    drop_from_cache(0, file_->bytes->size());
    digests_.drop_from_cache();
  }

  VerifyResult run() {
    const std::int64_t wanted = options_.num_threads > 0 ? options_.num_threads : kDefaultThreads;
    const std::int64_t runs = base::ceil_divide(num_chunks_, run_chunks_);
    base::run_on_threads(std::min(wanted, runs),
                         [this](std::int64_t, const std::stop_token& stop) { work(stop); });
    // What was hashed must be what is there now; a file that is being rewritten is not damaged.
    file_->check_unchanged();
    std::sort(damaged_.begin(), damaged_.end(),
              [](const auto& a, const auto& b) { return a.chunk < b.chunk; });
    return {.num_chunks = num_chunks_, .bytes_read = bytes_read_, .damaged = std::move(damaged_)};
  }

 private:
  void work(const std::stop_token& stop) {
    base::HostBuffer scratch(
        run_chunks_ > 1 ? reader_.scratch_bytes(run_chunks_ * digests_.chunk_bytes()) : 0);
    while (!stop.stop_requested()) {
      const std::int64_t first = next_chunk_.fetch_add(run_chunks_);
      if (first >= num_chunks_) return;
      check_stop(options_, file_->info.path);
      const std::int64_t count = std::min(run_chunks_, num_chunks_ - first);
      if (count == 1 || !run_matches(first, count, scratch)) {
        for (std::int64_t chunk = first; chunk < first + count; ++chunk) check(chunk);
      }
      if (options_.on_progress) options_.on_progress(count);
    }
  }

  /// Whether all chunks of a run were read and match. If not, they are looked at one by one, which
  /// tells what is wrong with which.
  bool run_matches(std::int64_t first, std::int64_t count, base::HostBuffer& scratch) {
    const std::int64_t bytes = digests_.chunk_bytes();
    const std::int64_t offset = *file_->leading->linear_offset + first * bytes;
    try {
      ReadCost cost;
      const std::span<const std::byte> run =
          reader_.read({offset, offset + count * bytes}, scratch.bytes(), options_.stop, cost);
      drop_from_cache(offset, count * bytes);
      bytes_read_ += cost.bytes_read;
      return digests_.matches(first, count, run, options_.stop);
    } catch (const Error& error) {
      if (!is_damage(error.code())) throw;
      return false;
    }
  }

  void check(std::int64_t chunk) {
    ReadCost cost;
    try {
      const auto look = [&] {
        digests_.check(chunk, nullptr, options_.stop, cost,
                       [](std::span<const std::byte>, std::int64_t) {});
      };
      io::ask_again(*bytes_, look, is_damage);
    } catch (const Error& error) {
      if (!is_damage(error.code())) throw;
      const std::lock_guard lock(mutex_);
      damaged_.push_back(damaged_chunk(chunk, digests_.rows_of(chunk), error));
    }
    bytes_read_ += cost.bytes_read;
    if (file_->leading->linear_offset) {
      drop_from_cache(*file_->leading->linear_offset + chunk * digests_.chunk_bytes(),
                      digests_.chunk_bytes());
    }
  }

  /// Where reads cannot bypass the page cache. What cannot be dropped is compared all the same.
  void drop_from_cache(std::int64_t offset, std::int64_t bytes) const noexcept {
    const io::LocalFile* const cached = io::as_local_file(*bytes_);
    if (cached != nullptr) io::drop_pages(cached->fd(), offset, offset + bytes);
  }

  std::shared_ptr<const Dataset::Impl> file_;
  const VerifyOptions& options_;
  std::shared_ptr<const ByteSource> bytes_;
  sources::ChunkDigests digests_;
  io::RangeReader reader_;
  std::int64_t num_chunks_;
  std::int64_t run_chunks_;  ///< Read together.
  std::atomic<std::int64_t> next_chunk_ = 0;
  std::atomic<std::int64_t> bytes_read_ = 0;

  std::mutex mutex_;
  std::vector<DamagedChunk> damaged_;  ///< Guarded by mutex_.
};

/// The same of rows of different lengths, in pieces of some MiB.
VerifyResult verify_rows(std::shared_ptr<const Dataset::Impl> file, const VerifyOptions& options) {
  if (const io::LocalFile* const cached = io::as_local_file(*file->bytes)) {
    io::drop_pages(cached->fd(), 0, cached->size());
  }
  const sources::RowDigests digests(file, io::direct_if_possible(file->bytes));
  const std::int64_t piece_rows = digests.rows_together();
  VerifyResult result{.num_chunks = base::ceil_divide(digests.num_rows(), piece_rows)};
  std::atomic<std::int64_t> next_piece = 0;
  std::mutex mutex;  // guards the result
  const auto work = [&](std::int64_t, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::int64_t piece = next_piece.fetch_add(1);
      if (piece >= result.num_chunks) return;
      check_stop(options, file->info.path);
      const RowRange rows{piece * piece_rows,
                          std::min((piece + 1) * piece_rows, digests.num_rows())};
      std::optional<DamagedChunk> damaged;
      std::int64_t bytes = 0;
      try {
        const auto look = [&] { return digests.check(rows, options.stop); };
        bytes = io::ask_again(*file->bytes, look, is_damage);
      } catch (const Error& error) {
        if (!is_damage(error.code())) throw;
        const auto* const mismatch = dynamic_cast<const DamagedRows*>(&error);
        if (mismatch != nullptr) bytes = mismatch->cost.bytes_read;
        damaged = damaged_chunk(piece, rows, error);
      }
      {
        const std::lock_guard lock(mutex);
        result.bytes_read += bytes;
        if (damaged) result.damaged.push_back(*std::move(damaged));
      }
      if (options.on_progress) options.on_progress(1);
    }
  };
  const std::int64_t wanted = options.num_threads > 0 ? options.num_threads : kDefaultThreads;
  base::run_on_threads(std::min(wanted, result.num_chunks), work);
  file->check_unchanged();
  std::sort(result.damaged.begin(), result.damaged.end(),
            [](const auto& a, const auto& b) { return a.chunk < b.chunk; });
  return result;
}

/// The next position of a grid, the last axis running fastest; false behind the last one.
bool advance(std::span<std::int64_t> coord, std::span<const std::int64_t> grid) {
  for (std::size_t axis = coord.size(); axis-- > 0;) {
    if (++coord[axis] < grid[axis]) return true;
    coord[axis] = 0;
  }
  return false;
}

/// The chunks whose entry in the index cannot be true. Calls `visited` for each one looked up.
/// \pre the images have an index.
std::vector<DamagedChunk> bad_entries(const Dataset::Impl& file,
                                      const std::function<void()>& visited) {
  const h5::ChunkIndex& index = *file.leading->index;
  std::vector<DamagedChunk> bad;
  std::array<std::int64_t, Shape::kMaxRank> position{};
  const std::span coord = std::span(position).first(index.grid().size());
  do {
    try {
      static_cast<void>(index.find(coord));
    } catch (const Error& error) {
      if (!is_damage(error.code())) throw;
      // Of chunks that cut samples, several have the same rows.
      if (bad.empty() || bad.back().chunk != coord[0]) {
        const std::int64_t rows = file.leading->stored.chunk_shape[0];
        bad.push_back(damaged_chunk(
            coord[0], {coord[0] * rows, std::min((coord[0] + 1) * rows, file.info.num_samples)},
            error));
      }
    }
    visited();
  } while (advance(coord, index.grid()));
  return bad;
}

/// Looks up all chunks of one file.
VerifyResult verify_index(const Dataset::Impl& file, const VerifyOptions& options) {
  VerifyResult result;
  if (file.leading->linear_offset || !file.leading->index) return result;
  const auto check_stopped = [&] { check_stop(options, file.info.path); };
  result.damaged = bad_entries(file, [&] {
    check_stopped();
    ++result.num_chunks;
    if (options.on_progress) options.on_progress(1);
  });
  const bool overlaps =
      std::any_of(result.damaged.begin(), result.damaged.end(),
                  [](const DamagedChunk& d) { return d.code == ErrorCode::unsupported; });
  // Only when the second of two is looked up is it known that they overlap, and then of both.
  if (overlaps) result.damaged = bad_entries(file, check_stopped);
  return result;
}

/// The results of all files, chunks and rows numbered through them.
template <class Check>
VerifyResult for_each_file(const Dataset& dataset, Check check) {
  VerifyResult all;
  std::int64_t first_chunk = 0;
  std::int64_t first_row = 0;
  for (const auto& file : h5::files_of(internal::Access::impl(dataset))) {
    VerifyResult one = check(file);
    all.num_chunks += one.num_chunks;
    all.bytes_read += one.bytes_read;
    for (DamagedChunk& damaged : one.damaged) {
      damaged.chunk += first_chunk;
      damaged.rows.begin += first_row;
      damaged.rows.end += first_row;
      for (RowRange& rows : damaged.damaged_rows) {
        rows.begin += first_row;
        rows.end += first_row;
      }
      all.damaged.push_back(std::move(damaged));
    }
    const StoredLayout& stored = file->info.stored;
    if (stored.chunked) first_chunk += base::ceil_divide(stored.shape[0], stored.chunk_shape[0]);
    first_row += file->info.num_samples;
  }
  return all;
}

}  // namespace

std::string why_not_verifiable(const Dataset& dataset) {
  const auto files = h5::files_of(internal::Access::impl(dataset));
  for (const auto& file : files) {
    const std::string reason = sources::why_not_comparable(*file);
    if (!reason.empty()) return (files.size() == 1 ? "" : "of " + file->info.path + ": ") + reason;
  }
  return {};
}

VerifyResult verify_chunk_index(const Dataset& dataset,
                                const std::function<void(std::int64_t)>& on_progress,
                                const std::stop_token& stop) {
  const VerifyOptions options{.on_progress = on_progress, .stop = stop};
  return for_each_file(dataset, [&](const auto& file) { return verify_index(*file, options); });
}

VerifyResult verify_chunks(const Dataset& dataset, const VerifyOptions& options) {
  check_options(options);
  if (const std::string reason = why_not_verifiable(dataset); !reason.empty()) {
    throw Error(ErrorCode::unsupported, dataset.info().path + ": " + reason +
                                            ", so there is nothing to compare its chunks with; "
                                            "pack it with h5pack, which stores digests");
  }
  return for_each_file(dataset, [&](const auto& file) {
    return sources::has_ragged_rows(*file) ? verify_rows(file, options)
                                           : ChunkVerification(file, options).run();
  });
}

}  // namespace chunkio
