#include "h5pack/sparse/csr_packer.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <chunkio/error.hpp>

#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/pack/row_order.hpp"
#include "h5pack/sources/file_stamps.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sparse/csr_output.hpp"
#include "h5pack/sparse/entry_log.hpp"
#include "h5pack/sparse/spill_file.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// \throws Error invalid_argument: the source lacks a row that is wanted.
void check_rows(const CsrOptions& options, std::int64_t num_rows, const std::string& source) {
  if (!options.rows) return;
  const std::int64_t last = options.rows->ranges().back().end - 1;
  if (last < num_rows) return;
  throw Error(ErrorCode::invalid_argument, "--rows: there is no row " + std::to_string(last) +
                                               " in the " + std::to_string(num_rows) + " rows of " +
                                               source);
}

/// Gives the entries of the rows that are wanted to `take`.
void read_selected(MatrixSource& source, const CsrOptions& options, const EntrySink& take,
                   cli::Progress& progress) {
  // Before the work, where the source knows.
  if (source.num_rows() > 0) check_rows(options, source.num_rows(), source.name());
  RowFilter filter(options.rows);
  std::vector<Entry> wanted;
  source.read(
      [&](std::span<const Entry> entries) {
        cli::StopSignal::check();
        if (filter.takes_all()) return take(entries);
        wanted.clear();
        std::copy_if(entries.begin(), entries.end(), std::back_inserter(wanted),
                     [&](const Entry& entry) { return filter.takes(entry.row); });
        take(wanted);
      },
      [&](std::int64_t units) { progress.add(units); });
}

/// The rows that are wanted, ascending. \throws Error as check_rows().
std::vector<std::int64_t> selected_rows(const CsrOptions& options, std::int64_t num_rows,
                                        const std::string& source) {
  if (!options.rows) return source_order(num_rows);
  check_rows(options, num_rows, source);
  std::vector<std::int64_t> rows;
  for (const chunkio::RowRange& range : options.rows->ranges()) {
    for (std::int64_t row = range.begin; row < range.end; ++row) rows.push_back(row);
  }
  return rows;
}

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
  void find_first_row();
  void sort_by_source();
  void make_buckets();
  void deal_out();
  void load(const Bucket& bucket);
  void sort_and_merge(const Bucket& bucket);
  [[nodiscard]] std::int64_t merge(std::span<Entry> row) const;
  [[nodiscard]] Error duplicate(const Entry& entry, const std::string& what) const;
  void count_rows();
  void write();
  void write_bucket(CsrOutput& output, const Bucket& bucket, cli::Progress& progress);
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
  std::int64_t source_rows_ = 0;
  std::string set_;             // that shards belong to
  std::int64_t first_row_ = 0;  // that is not in a file yet
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
    read_selected(
        source_, options_, [&](std::span<const Entry> entries) { log_->add(entries); }, progress);
  }
  lengths_ = log_->take_lengths(source_.num_rows());
  source_rows_ = std::ssize(lengths_);
  result_.num_columns = source_.num_columns();
  result_.read_seconds = watch.seconds();
}

/// Brings rows into the order that they had before they were shuffled, if the source says it.
void CsrPack::sort_by_source() {
  for (const chunkio::FieldInfo& field : source_.row_fields()) {
    if (field.name != kSourceIndex) continue;
    std::vector<std::int64_t> index(static_cast<std::size_t>(source_rows_));
    source_.read_row_field(field, std::as_writable_bytes(std::span(index)));
    std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
      return index[static_cast<std::size_t>(a)] < index[static_cast<std::size_t>(b)];
    });
  }
}

void CsrPack::order_rows() {
  order_ = selected_rows(options_, source_rows_, source_.name());
  result_.num_rows = std::ssize(order_);
  if (options_.order == RepackOrder::shuffled) {
    std::vector<std::int64_t> order = shuffled_order(result_.num_rows, options_.seed);
    for (std::int64_t& row : order) row = order_[static_cast<std::size_t>(row)];
    order_ = std::move(order);
  } else if (options_.order == RepackOrder::source) {
    sort_by_source();
  }
  place_.resize(lengths_.size());
  std::vector<std::int64_t> lengths(order_.size());
  for (std::size_t row = 0; row < order_.size(); ++row) {
    place_[static_cast<std::size_t>(order_[row])] = static_cast<std::uint32_t>(row);
    lengths[row] = lengths_[static_cast<std::size_t>(order_[row])];
  }
  lengths_ = std::move(lengths);
}

/// Equal in the shards of this matrix, packed with these options, and in no others.
std::string set_of(const std::string& options_json, std::int64_t num_columns,
                   std::span<const std::int64_t> lengths) {
  const auto bytes = std::as_bytes(lengths);
  return text_digest(options_json + std::to_string(num_columns) +
                     text_digest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

void CsrPack::find_first_row() {
  if (options_.shards == 0) return;
  set_ = set_of(options_.options_json, result_.num_columns, lengths_);
  if (options_.shards_done == 0) return;
  if (set_ != options_.done_set) {
    throw Error(ErrorCode::output_exists,
                source_.name() +
                    " is another matrix than that of the shards that are complete; "
                    "--force without --resume replaces them");
  }
  first_row_ = first_row_of_shard(options_.shards_done, options_.shards, result_.num_rows);
}

/// Entries that a bucket may have: half of the memory, or what names and tables leave of it. An
/// eighth is for buffers and the blocks on their way.
std::int64_t CsrPack::capacity() const {
  const std::int64_t tables = source_rows_ * kBytesARow + source_.names_bytes();
  const std::int64_t left = options_.memory_budget / 8 * 7 - tables;
  return std::min(options_.memory_budget / 2, left) / kEntryBytes;
}

void CsrPack::make_buckets() {
  const std::int64_t most = capacity();
  Bucket bucket{.first_row = first_row_};
  for (std::int64_t row = first_row_; row < result_.num_rows; ++row) {
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
      options_.memory_budget / 8 / kEntryBytes / std::ssize(buckets_), 64, kEntryBlock));
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
      if (entry.row < first_row_) continue;
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
      for (const Entry& entry : block) {
        const std::uint32_t row = place_[entry.row];
        if (row >= first_row_) put({row, entry.column, entry.bits});
      }
    });
    log_.reset();
  } else {
    std::vector<Entry> block;
    for (std::int64_t first = 0; first < bucket.num_entries; first += kEntryBlock) {
      cli::StopSignal::check();
      block.resize(static_cast<std::size_t>(std::min(kEntryBlock, bucket.num_entries - first)));
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

/// Rows of a bucket that one thread takes, of about so many entries.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

void CsrPack::write_bucket(CsrOutput& output, const Bucket& bucket, cli::Progress& progress) {
  std::vector<RowRange> ranges;
  for (std::int64_t row = 0; row < bucket.num_rows;) {
    const std::int64_t end =
        std::min(bucket.num_rows, output.end_of_file(bucket.first_row + row) - bucket.first_row);
    RowRange range{.first = row};
    const std::int64_t begin = begins_[static_cast<std::size_t>(row)];
    do {
      ++range.count;
      ++row;
    } while (row < end && begins_[static_cast<std::size_t>(row) + 1] - begin <= kEntryBlock);
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
    output.write_rows(bucket.first_row + ranges[i].first, ranges[i].count, columns, values);
    progress.add(ranges[i].count);
  });
}

/// Learns how long rows are without duplicates. One bucket stays for write().
void CsrPack::count_rows() {
  merged_lengths_.resize(lengths_.size());
  for (const Bucket& bucket : buckets_) load(bucket);
  for (auto row = static_cast<std::size_t>(first_row_); row < lengths_.size(); ++row) {
    const std::int64_t length = merged_lengths_[row];
    result_.num_written += length;
    result_.num_duplicates += lengths_[row] - length;
    result_.num_empty_rows += length == 0 ? 1 : 0;
    result_.longest_row = std::max(result_.longest_row, length);
  }
  result_.num_entries = result_.num_written;
}

void CsrPack::write() {
  const cli::StopSignalToken stopping;
  CsrOutput output(source_, path_, options_,
                   {.order = order_,
                    .lengths = merged_lengths_,
                    .source_rows = source_rows_,
                    .num_columns = result_.num_columns,
                    .set = set_},
                   stopping.token());
  if (options_.after_reading) options_.after_reading();
  cli::Progress progress("writing", "rows", result_.num_rows - first_row_, options_.quiet);
  for (const Bucket& bucket : buckets_) {
    if (dealt_) load(bucket);
    write_bucket(output, bucket, progress);
    if (&bucket == &buckets_.back()) std::vector<Entry>().swap(entries_);
    output.close_until(bucket.first_row + bucket.num_rows);
  }
  result_.file_bytes = output.file_bytes();
  progress.finish();
}

CsrResult CsrPack::run() {
  const Stopwatch watch;
  read();
  order_rows();
  find_first_row();
  make_buckets();
  if (buckets_.size() > 1) deal_out();
  count_rows();
  write();
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
    read_selected(
        source, options,
        [&](std::span<const Entry> entries) { result.num_entries += std::ssize(entries); },
        progress);
  });
  result.num_rows = std::ssize(selected_rows(options, source.num_rows(), source.name()));
  if (result.num_entries == 0) throw no_entries(source);
  result.num_columns = source.num_columns();
  result.read_seconds = result.seconds = watch.seconds();
  return result;
}

}  // namespace h5pack
