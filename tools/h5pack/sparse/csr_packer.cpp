#include "h5pack/sparse/csr_packer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "cli/byte_size.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/pack/row_order.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sparse/spill_file.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Entries that are moved at once: 1 MiB.
constexpr std::int64_t kBlock = std::int64_t{1} << 16;
constexpr std::int64_t kEntryBytes = sizeof(Entry);
/// Of all tables with one number a row, the writer's included.
constexpr std::int64_t kBytesARow = 80;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Error too_small(const std::string& source, const std::string& what) {
  return Error(ErrorCode::out_of_resources, source + ": " + what + "; raise --memory-budget",
               "memory_budget");
}

/// The entries of each row of the source, in the order of reading.
class EntryLog {
 public:
  /// \param source  what errors call it.
  EntryLog(const std::string& output, std::string source, std::int64_t memory_budget)
      : file_(output), source_(std::move(source)), memory_budget_(memory_budget) {}

  void add(std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      if (entry.row >= lengths_.size()) grow(entry.row + std::size_t{1});
      ++lengths_[entry.row];
    }
    file_.write(size_ * kEntryBytes, std::as_bytes(entries));
    size_ += std::ssize(entries);
  }
  /// Gives all entries again, in blocks.
  template <class Take>
  void for_each_block(const Take& take) const {
    std::vector<Entry> block;
    for (std::int64_t first = 0; first < size_; first += kBlock) {
      cli::StopSignal::check();
      block.resize(static_cast<std::size_t>(std::min(kBlock, size_ - first)));
      file_.read(first * kEntryBytes, std::as_writable_bytes(std::span(block)));
      take(std::span<const Entry>(block));
    }
  }

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// \param num_rows  of the source, some of them perhaps without entries behind the last.
  [[nodiscard]] std::vector<std::int64_t> take_lengths(std::int64_t num_rows) {
    if (num_rows > 0) grow(static_cast<std::size_t>(num_rows));
    return std::move(lengths_);
  }

 private:
  void grow(std::size_t num_rows) {
    if (num_rows > static_cast<std::size_t>(memory_budget_ / 2 / kBytesARow)) {
      throw too_small(source_,
                      "tables of " + std::to_string(num_rows) + " rows take " +
                          cli::format_bytes(static_cast<std::int64_t>(num_rows) * kBytesARow) +
                          ", more than half of the memory");
    }
    if (num_rows > lengths_.capacity()) lengths_.reserve(std::max(num_rows, 2 * lengths_.size()));
    lengths_.resize(num_rows);
  }

  SpillFile file_;
  std::string source_;
  std::int64_t memory_budget_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> lengths_;
};

/// Consecutive rows of the output.
struct Bucket {
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;
  std::int64_t first_entry = 0;  ///< In the file of buckets.
  std::int64_t num_entries = 0;
};

class CsrPack {
 public:
  CsrPack(MatrixSource& source, const std::string& path, const CsrOptions& options)
      : source_(source),
        path_(path),
        options_(options),
        duplicates_(options.duplicates.value_or(source.duplicates())) {}

  CsrResult run();

 private:
  void read();
  void order_rows();
  void make_buckets();
  void deal_out();
  void load(const Bucket& bucket);
  void sort_and_merge(const Bucket& bucket);
  [[nodiscard]] std::int64_t merge(std::span<Entry> row) const;
  [[nodiscard]] Error duplicate(const Entry& entry, const std::string& what) const;
  void count_rows();
  void write();
  void write_bucket(chunkio::SparseWriter& writer, const Bucket& bucket, cli::Progress& progress);
  [[nodiscard]] chunkio::SparseSpec specification();
  [[nodiscard]] std::int64_t capacity() const;

  MatrixSource& source_;
  const std::string& path_;
  const CsrOptions& options_;
  Duplicates duplicates_;
  std::optional<EntryLog> log_;
  std::optional<SpillFile> dealt_;     // Absent: all is one bucket.
  std::vector<std::int64_t> lengths_;  // Of each row of the output, duplicates included.
  std::vector<std::int64_t> order_;    // The row of the source that each of the output is.
  std::vector<std::uint32_t> place_;   // The other way round.
  std::vector<std::int64_t> merged_lengths_;
  std::vector<Bucket> buckets_;
  // Of the bucket at hand: its entries, by row, and where each row begins.
  std::vector<Entry> entries_;
  std::vector<std::int64_t> begins_;
  CsrResult result_;
};

void CsrPack::read() {
  const Stopwatch watch;
  log_.emplace(path_, source_.name(), options_.memory_budget);
  {
    cli::Progress progress("reading", source_.unit(),
                           std::max<std::int64_t>(1, source_.num_units()),
                           options_.quiet || source_.num_units() == 0);
    source_.read(
        [&](std::span<const Entry> entries) {
          cli::StopSignal::check();
          log_->add(entries);
        },
        [&](std::int64_t units) { progress.add(units); });
  }
  lengths_ = log_->take_lengths(source_.num_rows());
  result_.num_rows = static_cast<std::int64_t>(lengths_.size());
  result_.num_columns = source_.num_columns();
  result_.read_seconds = watch.seconds();
}

void CsrPack::order_rows() {
  order_ = options_.shuffled ? shuffled_order(result_.num_rows, options_.seed)
                             : source_order(result_.num_rows);
  place_.resize(order_.size());
  std::vector<std::int64_t> lengths(order_.size());
  for (std::size_t row = 0; row < order_.size(); ++row) {
    place_[static_cast<std::size_t>(order_[row])] = static_cast<std::uint32_t>(row);
    lengths[row] = lengths_[static_cast<std::size_t>(order_[row])];
  }
  lengths_ = std::move(lengths);
}

/// Entries that a bucket may have: half of the memory, or what names and tables leave of it. An
/// eighth is for buffers and the blocks on their way.
std::int64_t CsrPack::capacity() const {
  const std::int64_t tables = result_.num_rows * kBytesARow + source_.names_bytes();
  const std::int64_t left = options_.memory_budget / 8 * 7 - tables;
  return std::min(options_.memory_budget / 2, left) / kEntryBytes;
}

void CsrPack::make_buckets() {
  const std::int64_t most = capacity();
  Bucket bucket;
  for (std::int64_t row = 0; row < result_.num_rows; ++row) {
    const std::int64_t length = lengths_[static_cast<std::size_t>(row)];
    if (length > most) {
      throw too_small(
          source_.name(),
          "row " + std::to_string(order_[static_cast<std::size_t>(row)]) + " of the source has " +
              std::to_string(length) + " entries, and there is " + "memory for " +
              std::to_string(std::max<std::int64_t>(most, 0)) + " beside names and tables");
    }
    if (bucket.num_entries + length > most) {
      buckets_.push_back(bucket);
      bucket = {.first_row = row, .first_entry = bucket.first_entry + bucket.num_entries};
    }
    ++bucket.num_rows;
    bucket.num_entries += length;
  }
  buckets_.push_back(bucket);
  result_.num_buckets = std::ssize(buckets_);
}

/// Writes the entries of each bucket to a place of its own, numbered by rows of the output.
void CsrPack::deal_out() {
  dealt_.emplace(path_);
  std::vector<std::uint32_t> bucket_of(place_.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    std::fill_n(bucket_of.begin() + bucket.first_row, bucket.num_rows,
                static_cast<std::uint32_t>(b));
  }
  const auto buffer_entries = static_cast<std::size_t>(std::clamp<std::int64_t>(
      options_.memory_budget / 8 / kEntryBytes / std::ssize(buckets_), 64, kBlock));
  std::vector<std::vector<Entry>> buffers(buckets_.size());
  std::vector<std::int64_t> next(buckets_.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    next[b] = buckets_[b].first_entry;
    buffers[b].reserve(buffer_entries);
  }
  const auto flush = [&](std::size_t b) {
    dealt_->write(next[b] * kEntryBytes, std::as_bytes(std::span(buffers[b])));
    next[b] += std::ssize(buffers[b]);
    buffers[b].clear();
  };
  log_->for_each_block([&](std::span<const Entry> block) {
    for (Entry entry : block) {
      entry.row = place_[entry.row];
      const std::uint32_t b = bucket_of[entry.row];
      buffers[b].push_back(entry);
      if (buffers[b].size() == buffer_entries) flush(b);
    }
  });
  for (std::size_t b = 0; b < buckets_.size(); ++b) flush(b);
  log_.reset();
}

/// Brings the entries of a bucket to their rows, in the order in which they were read.
void CsrPack::load(const Bucket& bucket) {
  const auto num_rows = static_cast<std::size_t>(bucket.num_rows);
  begins_.assign(num_rows + 1, 0);
  for (std::size_t row = 0; row < num_rows; ++row) {
    begins_[row + 1] = begins_[row] + lengths_[static_cast<std::size_t>(bucket.first_row) + row];
  }
  std::vector<std::int64_t> next(begins_.begin(), begins_.end() - 1);
  entries_.resize(static_cast<std::size_t>(bucket.num_entries));
  const auto put = [&](const Entry& entry) {
    auto& at = next[static_cast<std::size_t>(entry.row - bucket.first_row)];
    entries_[static_cast<std::size_t>(at++)] = entry;
  };
  if (!dealt_) {
    log_->for_each_block([&](std::span<const Entry> block) {
      for (const Entry& entry : block) put({place_[entry.row], entry.column, entry.bits});
    });
    log_.reset();
  } else {
    std::vector<Entry> block;
    for (std::int64_t first = 0; first < bucket.num_entries; first += kBlock) {
      cli::StopSignal::check();
      block.resize(static_cast<std::size_t>(std::min(kBlock, bucket.num_entries - first)));
      dealt_->read((bucket.first_entry + first) * kEntryBytes,
                   std::as_writable_bytes(std::span(block)));
      for (const Entry& entry : block) put(entry);
    }
  }
  sort_and_merge(bucket);
}

Error CsrPack::duplicate(const Entry& entry, const std::string& what) const {
  const auto name = [](const MatrixSource::NameOf& names, std::int64_t number) {
    return names ? cli::quote(names(number)) : std::to_string(number);
  };
  return Error(ErrorCode::corrupt_data,
               source_.name() + ": row " + name(source_.row_names(), order_[entry.row]) +
                   ", column " + name(source_.column_names(), entry.column) + ": " + what);
}

/// Merges entries of one column, which are neighbours. \returns how many are left.
std::int64_t CsrPack::merge(std::span<Entry> row) const {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i].column != row[kept].column) {
      row[++kept] = row[i];
      continue;
    }
    switch (duplicates_) {
      case Duplicates::last:
        row[kept] = row[i];
        break;
      case Duplicates::sum: {
        const auto sum = add(row[kept].bits, row[i].bits, source_.dtype());
        if (!sum) throw duplicate(row[i], misfit("the sum of several entries", source_.dtype()));
        row[kept].bits = *sum;
        break;
      }
      case Duplicates::fail:
        throw duplicate(row[i], "there are several entries; --duplicates sum or last takes them");
    }
  }
  return row.empty() ? 0 : static_cast<std::int64_t>(kept) + 1;
}

void CsrPack::sort_and_merge(const Bucket& bucket) {
  const auto by_column = [](const Entry& a, const Entry& b) { return a.column < b.column; };
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, bucket.num_rows, 64), [&](const auto& rows) {
        for (std::int64_t row = rows.begin(); row < rows.end(); ++row) {
          const auto begin = begins_[static_cast<std::size_t>(row)];
          const auto length = begins_[static_cast<std::size_t>(row) + 1] - begin;
          const auto all = std::span(entries_).subspan(static_cast<std::size_t>(begin),
                                                       static_cast<std::size_t>(length));
          if (!std::is_sorted(all.begin(), all.end(), by_column)) {
            std::stable_sort(all.begin(), all.end(), by_column);
          }
          merged_lengths_[static_cast<std::size_t>(bucket.first_row + row)] = merge(all);
        }
      });
}

chunkio::SparseSpec CsrPack::specification() {
  chunkio::SparseSpec spec{.row_lengths = merged_lengths_,
                           .num_columns = result_.num_columns,
                           .dtype = source_.dtype(),
                           .order = options_.shuffled ? "shuffled" : "source",
                           .seed = options_.seed,
                           .options_json = options_.options_json};
  // A row without a name is called what it was in the source.
  const MatrixSource::NameOf names = source_.row_names();
  spec.row_name = [this, names,
                   text = std::string()](std::int64_t row) mutable -> std::string_view {
    const std::int64_t number = order_[static_cast<std::size_t>(row)];
    if (names) return names(number);
    text = std::to_string(number);
    return text;
  };
  spec.column_name = source_.column_names();
  chunkio::FieldData rows{{kSourceIndex, chunkio::DType::int64, chunkio::Shape{}}, {}, {}};
  rows.stream = [this](const chunkio::FieldData::Sink& sink) {
    sink(std::as_bytes(std::span(order_)));
  };
  spec.fields.push_back(std::move(rows));
  return spec;
}

/// Rows of a bucket that one thread takes, of about so many entries.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

void CsrPack::write_bucket(chunkio::SparseWriter& writer, const Bucket& bucket,
                           cli::Progress& progress) {
  std::vector<RowRange> ranges;
  for (std::int64_t row = 0; row < bucket.num_rows;) {
    RowRange range{.first = row};
    const std::int64_t begin = begins_[static_cast<std::size_t>(row)];
    do {
      ++range.count;
      ++row;
    } while (row < bucket.num_rows && begins_[static_cast<std::size_t>(row) + 1] - begin <= kBlock);
    ranges.push_back(range);
  }
  const std::size_t value_bytes = size_of(source_.dtype());
  tbb::parallel_for(std::size_t{0}, ranges.size(), [&](std::size_t i) {
    cli::StopSignal::check();
    std::vector<std::int64_t> columns;
    std::vector<std::byte> values;
    for (std::int64_t row = ranges[i].first; row < ranges[i].first + ranges[i].count; ++row) {
      const auto begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(row)]);
      const auto length = static_cast<std::size_t>(
          merged_lengths_[static_cast<std::size_t>(bucket.first_row + row)]);
      for (const Entry& entry : std::span(entries_).subspan(begin, length)) {
        columns.push_back(entry.column);
        values.resize(columns.size() * value_bytes);
        store(entry.bits, source_.dtype(), values.data() + values.size() - value_bytes);
      }
    }
    writer.write_rows(bucket.first_row + ranges[i].first, ranges[i].count, columns, values);
    progress.add(ranges[i].count);
  });
}

/// Learns how long rows are without duplicates. One bucket stays for write().
void CsrPack::count_rows() {
  merged_lengths_.resize(lengths_.size());
  for (const Bucket& bucket : buckets_) load(bucket);
  for (const std::int64_t length : merged_lengths_) {
    result_.num_entries += length;
    result_.num_empty_rows += length == 0 ? 1 : 0;
    result_.longest_row = std::max(result_.longest_row, length);
  }
  result_.num_duplicates =
      std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}) - result_.num_entries;
}

void CsrPack::write() {
  const cli::StopSignalToken stopping;
  chunkio::SparseWriter writer(path_, specification(),
                               {.overwrite = options_.overwrite, .stop = stopping.token()});
  cli::Progress progress("writing", "rows", result_.num_rows, options_.quiet);
  for (const Bucket& bucket : buckets_) {
    if (dealt_) load(bucket);
    write_bucket(writer, bucket, progress);
  }
  std::vector<Entry>().swap(entries_);
  if (options_.before_publishing) options_.before_publishing();
  writer.close();
  progress.finish();
}

CsrResult CsrPack::run() {
  const Stopwatch watch;
  read();
  order_rows();
  make_buckets();
  if (buckets_.size() > 1) deal_out();
  count_rows();
  write();
  result_.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  result_.seconds = watch.seconds();
  return result_;
}

/// Runs `work` with so many threads of TBB.
template <class Work>
void in_arena(int threads, const Work& work) {
  const int count =
      threads > 0 ? threads : static_cast<int>(tbb::this_task_arena::max_concurrency());
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(count));
  tbb::task_arena arena(count);
  arena.execute(work);
}

}  // namespace

CsrResult pack_csr(MatrixSource& source, const std::string& path, const CsrOptions& options) {
  CsrResult result;
  in_arena(options.threads, [&] { result = CsrPack(source, path, options).run(); });
  return result;
}

CsrResult count_csr(MatrixSource& source, const CsrOptions& options) {
  const Stopwatch watch;
  CsrResult result;
  in_arena(options.threads, [&] {
    cli::Progress progress("reading", source.unit(), std::max<std::int64_t>(1, source.num_units()),
                           options.quiet || source.num_units() == 0);
    source.read(
        [&](std::span<const Entry> entries) {
          cli::StopSignal::check();
          result.num_entries += std::ssize(entries);
        },
        [&](std::int64_t units) { progress.add(units); });
  });
  result.num_rows = source.num_rows();
  result.num_columns = source.num_columns();
  result.read_seconds = result.seconds = watch.seconds();
  return result;
}

}  // namespace h5pack
