#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/pixel_statistics.hpp>
#include <chunkio/verify.hpp>
#include <chunkio/version.hpp>

#include "base/checked_math.hpp"
#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"
#include "base/uuid.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"
#include "h5/stored_array.hpp"
#include "io/range_writer.hpp"
#include "pipeline/file_structure.hpp"
#include "pipeline/filtered_chunks.hpp"
#include "pipeline/group_commit.hpp"
#include "pipeline/journal.hpp"
#include "pipeline/owned_file.hpp"
#include "pipeline/read_back.hpp"
#include "pipeline/read_back_thread.hpp"
#include "pipeline/run_description.hpp"
#include "pipeline/writer_checks.hpp"

namespace chunkio {
namespace {

using pipeline::ChunkRecord;
using pipeline::FieldDigests;
using pipeline::FilteredChunks;
using pipeline::GroupCommit;
using pipeline::Journal;
using pipeline::OwnedFile;
using pipeline::OwnerLock;

/// The hint where what a run left cannot be gone on with.
constexpr const char* kStartAgain = "set overwrite and not resume to start again";
/// Fields are read back in pieces of this size.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

std::string partial_of(const std::string& path) { return path + ".partial"; }
std::string journal_of(const std::string& path) { return partial_of(path) + ".journal"; }

/// \throws Error io_failed.
bool exists(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw base::system_error(errno, "inspect", path);
}

/// Values of fields may be large, and nobody needs a copy.
DatasetSpec without_fields(const DatasetSpec& spec) {
  return {.num_samples = spec.num_samples,
          .height = spec.height,
          .width = spec.width,
          .channels = spec.channels,
          .layout = spec.layout,
          .channel_order = spec.channel_order,
          .class_names = spec.class_names,
          .attribute_names = spec.attribute_names,
          .split = spec.split,
          .order = spec.order,
          .seed = spec.seed,
          .options_json = spec.options_json,
          .shard = spec.shard};
}

/// The digest of all values of `field` as they are in the file; absent if it is not there.
std::optional<std::uint64_t> stored_digest(const Dataset& dataset, const std::string& field) {
  const auto info = dataset.find_field(field);
  if (!info) return std::nullopt;
  const auto row_bytes = static_cast<std::int64_t>(Dataset::row_bytes(*info));
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
  base::RunningDigest digest;
  std::vector<std::byte> piece;
  for (std::int64_t row = 0; row < dataset.size(); row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, dataset.size() - row);
    piece.resize(static_cast<std::size_t>(count * row_bytes));
    dataset.read_field(field, row, count, piece);
    digest.add(piece);
  }
  return digest.value();
}

enum ChunkState : std::uint8_t { kMissing = 0, kWriting = 1, kWritten = 2 };

}  // namespace

struct DatasetWriter::Impl {
  Impl(std::string target_path, const DatasetSpec& dataset, const WriterOptions& options);

  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return chunk_samples * sample_bytes; }
  [[nodiscard]] pipeline::PieceSize piece_size() const noexcept {
    return {.rows = chunk_samples, .row_bytes = sample_bytes};
  }
  [[nodiscard]] std::int64_t offset_of(std::int64_t chunk) const noexcept {
    return base_offset + chunk * chunk_bytes();
  }
  /// Rows that a chunk has room for.
  [[nodiscard]] std::int64_t rows_of(std::int64_t chunk) const noexcept {
    return std::min(chunk_samples, num_samples - chunk * chunk_samples);
  }

  // Beginning.
  void begin_afresh(const DatasetSpec& dataset, bool discard_leftover);
  void write_structure(const DatasetSpec& dataset);
  void begin_filtered(const DatasetSpec& dataset);
  [[nodiscard]] h5::SkeletonOptions skeleton_options() const;
  void begin_journal();
  [[nodiscard]] bool take_up_leftover();
  void check_same_run(const pipeline::JournalHeader& header) const;
  void accept_chunks();
  void reserve_space();
  void begin_groups();
  [[nodiscard]] std::vector<pipeline::ExpectedBytes> expected(
      std::span<const ChunkRecord> records) const;

  // Chunks.
  void write_chunk(std::int64_t chunk, std::span<const std::byte> rows, std::string_view note);
  [[nodiscard]] std::span<std::uint64_t> digests_of_rows(std::int64_t chunk) noexcept {
    return std::span(row_digests)
        .subspan(static_cast<std::size_t>(chunk * chunk_samples),
                 static_cast<std::size_t>(rows_of(chunk)));
  }
  [[nodiscard]] std::uint64_t chunk_digest(std::int64_t chunk);
  void set_rows(std::int64_t num_rows, std::vector<FieldData> fields);
  /// Adds samples, from wherever they are.
  void add_pixels(PixelStatistics& sums, std::span<const std::byte> rows) const noexcept;

  // Ending.
  [[nodiscard]] std::int64_t final_rows() const noexcept {
    return shortened ? shortened->num_samples : num_samples;
  }
  void check_all_written() const;
  void finish();
  void add_resumed_pixels();
  void complete_structure();
  void verify();
  [[nodiscard]] bool has_digests(const Dataset& dataset) const;
  [[nodiscard]] bool has_statistics(const DatasetInfo& info) const;
  [[nodiscard]] std::optional<std::int64_t> first_damaged(const Dataset& dataset);
  void let_go() noexcept;
  [[nodiscard]] Dataset open_partial() const;

  /// Once it is known where the chunks lie.
  [[nodiscard]] pipeline::FileStructure structure() const noexcept {
    return {*partial, base_offset, offset_of(num_chunks), file_bytes};
  }

  std::string target;
  bool overwrite;
  std::stop_token stop;
  std::int64_t commit_bytes;
  std::int64_t num_samples;
  std::int64_t sample_bytes;
  std::int64_t chunk_samples;
  std::int64_t num_chunks;
  ChunkFilter filter;
  DatasetSpec spec;            ///< Without the values of its fields.
  FieldDigests field_digests;  ///< Of the values that the file shall hold.
  std::string run;             ///< Its description; empty: no journal.
  /// Bytes of structure and fields, at most: what completing the file may take once more.
  std::int64_t structure_bytes;

  // Destroyed from the last to the first: the partial file is removed before its journal, since a
  // journal without it is harmless. Absent once closed, well or badly.
  std::optional<Journal> journal;
  std::optional<OwnedFile> partial;
  std::optional<io::RangeWriter> chunk_writer;
  std::optional<pipeline::ReadBackThread> read_back;  ///< With a journal only.
  std::optional<GroupCommit> groups;
  std::optional<FilteredChunks> filtered;

  bool published = false;
  double read_back_seconds = 0;
  bool resumable = false;        ///< Once closed badly: whether the files were kept.
  std::int64_t base_offset = 0;  ///< Of chunk 0 in the file.
  std::int64_t file_bytes = 0;
  std::vector<std::atomic<std::uint8_t>> states;  ///< ChunkState of each chunk.
  // Each element is written by the thread that writes its chunk.
  std::vector<std::uint64_t> row_digests;  ///< Of the pixels; of all that is covered once finished.
  std::vector<std::int64_t> rows_written;
  std::uint64_t empty_row_digest;  ///< Of zeros.
  std::vector<ResumedChunk> resumed;
  std::optional<DatasetStatistics> statistics;  ///< By set_statistics().
  // Absent if they are not computed.
  std::optional<PixelStatistics> pixel_sums;
  std::mutex sums_mutex;
  std::vector<std::int64_t> class_counts;
  std::optional<DatasetSpec> shortened;  ///< By set_rows().
  std::uint64_t last_chunk_digest = 0;   ///< Of a file that is shortened, once it is finished.
};

DatasetWriter::Impl::Impl(std::string target_path, const DatasetSpec& dataset,
                          const WriterOptions& options)
    : target(std::move(target_path)),
      overwrite(options.overwrite),
      stop(options.stop),
      commit_bytes(options.commit_bytes),
      num_samples(dataset.num_samples),
      sample_bytes(dataset.height * dataset.width * dataset.channels),
      chunk_samples(pipeline::checked_chunk_samples(dataset, options)),
      num_chunks(base::ceil_divide(num_samples, chunk_samples)),
      filter(options.filter),
      spec(without_fields(dataset)),
      field_digests(pipeline::digest_fields(dataset.fields)),
      structure_bytes(h5::skeleton_bytes(dataset)),
      states(static_cast<std::size_t>(num_chunks)),
      row_digests(static_cast<std::size_t>(num_samples)),
      rows_written(static_cast<std::size_t>(num_chunks)),
      empty_row_digest(
          base::digest(std::vector<std::byte>(static_cast<std::size_t>(sample_bytes)))) {
  for (const FieldData& field : dataset.fields) spec.fields.push_back({field.info, {}, {}});
  pipeline::check_target(target, overwrite);
  pipeline::check_options(options);
  if (filter.deflate_level > 0 && chunk_bytes() > h5::kMaxFilteredChunkBytes) {
    throw Error(ErrorCode::invalid_argument,
                "a filtered chunk of " + std::to_string(chunk_bytes()) + " bytes would exceed " +
                    std::to_string(h5::kMaxFilteredChunkBytes) +
                    ", which nobody could read; lower chunk_samples",
                "chunk_samples");
  }
  if (!options.identity.empty()) {
    run = pipeline::describe_run(options.identity, dataset, field_digests, chunk_samples,
                                 filter.to_string());
  }
  if (options.statistics) {
    pixel_sums.emplace(dataset.channels, dataset.layout);
    class_counts = count_classes(dataset.fields, dataset.class_names);
  }
  if (!options.resume || !take_up_leftover()) begin_afresh(dataset, overwrite || options.resume);
  chunk_writer.emplace(partial->fd(), partial->path());
}

// ---- Beginning ----

void DatasetWriter::Impl::begin_afresh(const DatasetSpec& dataset, bool discard_leftover) {
  if (discard_leftover) OwnedFile::discard(partial_of(target));
  // Before there is a new file that it could be taken for the journal of.
  if (!exists(partial_of(target))) OwnedFile::discard(journal_of(target));
  partial.emplace(OwnedFile::create(partial_of(target), OwnerLock::shared));
  if (filter.deflate_level > 0) {
    begin_filtered(dataset);
    return;
  }
  write_structure(dataset);
  if (!run.empty()) begin_journal();
}

h5::SkeletonOptions DatasetWriter::Impl::skeleton_options() const {
  return {.chunk_samples = chunk_samples,
          .creator = "chunkio " + std::string(version()),
          .uuid = base::random_uuid(),
          .cache = recommend_cache(num_chunks, chunk_bytes()),
          .filter = filter};
}

/// Without space for the chunks, whose size nobody knows, and without a journal: what a killed
/// writer leaves has no structure yet.
void DatasetWriter::Impl::begin_filtered(const DatasetSpec& dataset) {
  partial->reserve(2 * structure_bytes);
  filtered.emplace(partial->fd(), partial->path(), dataset, skeleton_options());
}

void DatasetWriter::Impl::write_structure(const DatasetSpec& dataset) {
  const auto pixels = base::checked_multiply(num_chunks, chunk_bytes());
  const auto bytes = base::checked_add(pixels.value_or(0), 2 * structure_bytes);
  if (!pixels || !bytes) {
    throw Error(ErrorCode::invalid_argument, target + " would be larger than a file can be");
  }
  reserve_space();

  h5::write_skeleton(partial->fd(), partial->path(), dataset, skeleton_options());

  // The pixels' place comes from the file, by the way every reader takes.
  base_offset = *open_partial().impl()->images->linear_offset;
  file_bytes = std::max(partial->size(), offset_of(num_chunks));
  base::resize_file(partial->fd(), file_bytes, partial->path());
  reserve_space();  // once more: setting the length gave back what lay behind it
  partial->sync();
}

void DatasetWriter::Impl::begin_journal() {
  journal.emplace(Journal::create(journal_of(target), {.first_chunk_offset = base_offset,
                                                       .chunk_bytes = chunk_bytes(),
                                                       .num_chunks = num_chunks,
                                                       .file_bytes = file_bytes,
                                                       .structure_digest = structure().digest(),
                                                       .run = run}));
  pipeline::sync_folder(pipeline::folder_of(target));
  begin_groups();
}

/// Everything that a run can want later is asked for now, when a full disk costs no work: pixels,
/// structure, and the part of it that is written again at the end.
void DatasetWriter::Impl::reserve_space() {
  partial->reserve(num_chunks * chunk_bytes() + 2 * structure_bytes);
}

void DatasetWriter::Impl::begin_groups() {
  constexpr std::int64_t kRecordBytes = 256;  // with a note of usual length
  journal->file().reserve(journal->file().size() + num_chunks * kRecordBytes +
                          structure().journal_bytes());
  read_back.emplace(partial->fd(), partial->path(), piece_size());
  groups.emplace(*partial, *journal, commit_bytes, !resumed.empty(),
                 [this](std::span<const ChunkRecord> group) { read_back->add(expected(group)); });
}

/// What the chunks of these records are to be in the file.
std::vector<pipeline::ExpectedBytes> DatasetWriter::Impl::expected(
    std::span<const ChunkRecord> records) const {
  std::vector<pipeline::ExpectedBytes> pieces;
  for (const ChunkRecord& record : records) {
    pieces.push_back({.file_offset = offset_of(record.chunk), .digest = record.digest});
  }
  return pieces;
}

/// Goes on with what an earlier run left.
/// \returns false if there is nothing to go on with. \throws Error as the writer's constructor;
/// nothing is lost then.
bool DatasetWriter::Impl::take_up_leftover() {
  auto left_journal = Journal::take_up(journal_of(target));
  if (!left_journal) return false;
  auto left_partial = OwnedFile::take_up(partial_of(target), OwnerLock::shared);
  if (!left_partial) return false;
  journal.emplace(std::move(*left_journal));
  partial.emplace(std::move(*left_partial));
  check_same_run(journal->header());
  base_offset = journal->header().first_chunk_offset;
  file_bytes = journal->header().file_bytes;
  // A killed run may have left a file that libhdf5 cannot open.
  if (!journal->saved().empty()) structure().restore(*journal);
  if (partial->size() != file_bytes || structure().digest() != journal->header().structure_digest) {
    throw Error(
        ErrorCode::corrupt_data,
        partial->path() + " is damaged: its structure is not what its journal says; " + kStartAgain,
        "overwrite", "resume");
  }
  journal->forget_saved();
  accept_chunks();
  reserve_space();
  begin_groups();
  if (resumed.empty()) {
    partial->remove_at_end();
    journal->file().remove_at_end();
  }
  return true;
}

void DatasetWriter::Impl::check_same_run(const pipeline::JournalHeader& header) const {
  std::optional<std::string> difference;
  try {
    difference = pipeline::first_difference(header.run, run);
  } catch (const Error& error) {
    throw Error(error.code(), journal_of(target) + ": " + error.what() + "; " + kStartAgain,
                "overwrite", "resume");
  }
  if (difference) {
    throw Error(ErrorCode::invalid_argument,
                partial->path() + " was begun by another run: " + *difference +
                    "; give the same input and options, or " + kStartAgain,
                "overwrite", "resume");
  }
  if (header.chunk_bytes != chunk_bytes() || header.num_chunks != num_chunks ||
      header.first_chunk_offset < 0 || header.first_chunk_offset > header.file_bytes ||
      (header.file_bytes - header.first_chunk_offset) / chunk_bytes() < num_chunks) {
    throw Error(ErrorCode::corrupt_data, journal_of(target) + " contradicts itself; " + kStartAgain,
                "overwrite", "resume");
  }
}

/// Believes no record: what lies at a chunk's place decides.
void DatasetWriter::Impl::accept_chunks() {
  std::vector<ChunkRecord> records = journal->take_chunks();
  std::vector<ChunkRecord*> last(static_cast<std::size_t>(num_chunks));
  for (ChunkRecord& record : records) {
    if (record.chunk < 0 || record.chunk >= num_chunks || record.num_rows < 1 ||
        record.num_rows > rows_of(record.chunk)) {
      continue;
    }
    last[static_cast<std::size_t>(record.chunk)] = &record;
  }
  std::erase(last, nullptr);
  std::vector<pipeline::ExpectedBytes> pieces;
  for (const ChunkRecord* record : last) {
    pieces.push_back({.file_offset = offset_of(record->chunk), .digest = record->digest});
  }
  const auto take_sound = [&](std::size_t piece, std::span<const std::uint64_t> rows) {
    const auto of_rows = digests_of_rows(last[piece]->chunk);
    std::copy_n(rows.begin(), of_rows.size(), of_rows.begin());
  };
  const auto damaged = pipeline::find_damaged(partial->fd(), pieces, piece_size(), partial->path(),
                                              stop, take_sound);
  for (const std::size_t piece : damaged) last[piece] = nullptr;
  std::erase(last, nullptr);
  resumed.reserve(last.size());
  for (ChunkRecord* record : last) {
    const auto chunk = static_cast<std::size_t>(record->chunk);
    states[chunk] = kWritten;
    rows_written[chunk] = record->num_rows;
    resumed.push_back(
        {.chunk = record->chunk, .num_rows = record->num_rows, .note = std::move(record->note)});
  }
}

// ---- Chunks ----

void DatasetWriter::Impl::write_chunk(std::int64_t chunk, std::span<const std::byte> rows,
                                      std::string_view note) {
  if (!partial) {
    throw Error(ErrorCode::invalid_argument, target + ": write_chunk after close");
  }
  if (groups) groups->check();
  const std::string shown = "chunk " + std::to_string(chunk) + " of " + target;
  if (chunk < 0 || chunk >= num_chunks) {
    throw Error(ErrorCode::invalid_argument,
                shown + ": there are " + std::to_string(num_chunks) + " chunks");
  }
  const auto bytes = static_cast<std::int64_t>(rows.size());
  const std::int64_t most = rows_of(chunk) * sample_bytes;
  if (bytes == 0 || bytes > most || bytes % sample_bytes != 0) {
    throw Error(ErrorCode::invalid_argument, shown + " takes " + std::to_string(most) + " bytes (" +
                                                 std::to_string(sample_bytes) + " a sample), got " +
                                                 std::to_string(bytes));
  }
  if (groups && std::cmp_greater(note.size(), pipeline::kMaxNoteBytes)) {
    throw Error(ErrorCode::invalid_argument, shown + ": a note has at most " +
                                                 std::to_string(pipeline::kMaxNoteBytes) +
                                                 " bytes, got " + std::to_string(note.size()));
  }
  const auto index = static_cast<std::size_t>(chunk);
  std::uint8_t missing = kMissing;
  if (!states[index].compare_exchange_strong(missing, kWriting)) {
    throw Error(ErrorCode::invalid_argument, shown + " was written twice");
  }
  std::optional<pipeline::ReadBackThread::Writing> writing;
  if (read_back) writing.emplace(*read_back);
  ChunkRecord record;
  std::optional<PixelStatistics> sums;
  try {
    if (pixel_sums) add_pixels(sums.emplace(spec.channels, spec.layout), rows);
    // Before the pixels: what lies in the file without a record would not be read back.
    record = {.chunk = chunk, .num_rows = bytes / sample_bytes, .digest = 0, .note = {}};
    if (groups) record.note = note;
    const std::vector<std::byte> padding(static_cast<std::size_t>(chunk_bytes() - bytes));
    const auto of_rows = digests_of_rows(chunk);
    const auto row_bytes = static_cast<std::size_t>(sample_bytes);
    for (std::size_t row = 0; row < of_rows.size(); ++row) {
      of_rows[row] = std::cmp_less(row, record.num_rows)
                         ? base::digest(rows.subspan(row * row_bytes, row_bytes))
                         : empty_row_digest;
    }
    record.digest = chunk_digest(chunk);
    if (filtered) {
      std::vector<std::byte> whole;
      if (!padding.empty()) {
        whole.assign(rows.begin(), rows.end());
        whole.insert(whole.end(), padding.begin(), padding.end());
      }
      filtered->write(chunk, padding.empty() ? rows : whole);
    } else {
      chunk_writer->write(offset_of(chunk), rows);
      chunk_writer->write(offset_of(chunk) + bytes, padding);
    }
  } catch (...) {
    states[index] = kMissing;
    throw;
  }
  rows_written[index] = record.num_rows;
  states[index] = kWritten;
  if (sums) {
    const std::lock_guard lock(sums_mutex);
    pixel_sums->merge(*sums);
  }
  if (groups) groups->add(std::move(record), chunk_bytes());
}

/// The digest of those of all rows that the chunk has room for, as they are stored.
std::uint64_t DatasetWriter::Impl::chunk_digest(std::int64_t chunk) {
  base::RunningDigest digest;
  digest.add(std::as_bytes(digests_of_rows(chunk)));
  for (std::int64_t row = rows_of(chunk); row < chunk_samples; ++row) {
    digest.add(std::as_bytes(std::span(&empty_row_digest, 1)));
  }
  return digest.value();
}

void DatasetWriter::Impl::add_pixels(PixelStatistics& sums,
                                     std::span<const std::byte> rows) const noexcept {
  const std::span images(reinterpret_cast<const std::uint8_t*>(rows.data()), rows.size());
  const auto image_bytes = static_cast<std::size_t>(sample_bytes);
  for (std::size_t at = 0; at < images.size(); at += image_bytes) {
    sums.add(images.subspan(at, image_bytes));
  }
}

void DatasetWriter::Impl::set_rows(std::int64_t num_rows, std::vector<FieldData> fields) {
  if (!partial) throw Error(ErrorCode::invalid_argument, target + ": set_rows after close");
  if (filtered && num_rows != num_samples) {
    throw Error(ErrorCode::unsupported,
                target + ": a filtered file cannot be shortened; write it without filter");
  }
  if (num_rows < 1 || num_rows > num_samples) {
    throw Error(ErrorCode::invalid_argument, target + ": rows must be 1 to " +
                                                 std::to_string(num_samples) + ", got " +
                                                 std::to_string(num_rows));
  }
  const auto same_kind = [](const FieldData& a, const FieldData& b) {
    return a.info.name == b.info.name && a.info.dtype == b.info.dtype &&
           a.info.row_shape == b.info.row_shape;
  };
  if (!std::equal(fields.begin(), fields.end(), spec.fields.begin(), spec.fields.end(),
                  same_kind)) {
    throw Error(ErrorCode::invalid_argument,
                target + ": set_rows needs the fields of the specification, in their order");
  }
  DatasetSpec fewer = spec;
  fewer.num_samples = num_rows;
  fewer.fields = std::move(fields);
  h5::validate(fewer, num_samples);
  field_digests = pipeline::digest_fields(fewer.fields);
  if (pixel_sums) class_counts = count_classes(fewer.fields, fewer.class_names);
  shortened = std::move(fewer);
}

// ---- Ending ----

void DatasetWriter::Impl::check_all_written() const {
  const std::int64_t rows = final_rows();
  for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    const std::string shown = target + ": chunk " + std::to_string(chunk);
    const bool written = states[index] == kWritten;
    const std::int64_t needed =
        std::clamp<std::int64_t>(rows - chunk * chunk_samples, 0, chunk_samples);
    if (needed > 0 && !written) {
      throw Error(ErrorCode::invalid_argument, shown + " was not written");
    }
    if (written && rows_written[index] != needed) {
      throw Error(ErrorCode::invalid_argument,
                  shown + " was given " + std::to_string(rows_written[index]) + " rows, and " +
                      std::to_string(needed) + " of the file's " + std::to_string(rows) +
                      " belong there");
    }
  }
}

void DatasetWriter::Impl::finish() {
  if (groups) {
    groups->commit();
    structure().save(*journal);
  } else if (!filtered) {
    partial->sync();
  }
  if (shortened && !filtered) {
    // Before digests of fields are chained on.
    const std::int64_t last = base::ceil_divide(final_rows(), chunk_samples) - 1;
    last_chunk_digest = chunk_digest(last);
    row_digests.resize(static_cast<std::size_t>(final_rows()));
  }
  if (pixel_sums && !statistics) {
    add_resumed_pixels();
    statistics = {pixel_sums->result(), class_counts, pixel_sums->mean_picture_std(), {}};
  }
  complete_structure();
  base::Stopwatch watch;
  verify();
  read_back_seconds = watch.lap();
  partial->publish(target, overwrite);
  published = true;
  try {
    pipeline::sync_folder(pipeline::folder_of(target));
  } catch (const Error& error) {
    throw Error(error.code(), target + " is complete, but may be gone after a power cut: " +
                                  error.what() + "; run sync, and check the disk");
  }
  if (journal) journal->file().remove_at_end();
}

/// What an earlier run wrote was not seen by this one.
void DatasetWriter::Impl::add_resumed_pixels() {
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kPieceBytes / sample_bytes);
  std::vector<std::byte> piece;
  for (const ResumedChunk& chunk : resumed) {
    for (std::int64_t row = 0; row < chunk.num_rows; row += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, chunk.num_rows - row);
      piece.resize(static_cast<std::size_t>(count * sample_bytes));
      base::read_at(partial->fd(), offset_of(chunk.chunk) + row * sample_bytes, piece,
                    partial->path());
      add_pixels(*pixel_sums, piece);
    }
  }
}

void DatasetWriter::Impl::complete_structure() {
  h5::Completion completion;
  completion.statistics = statistics;
  completion.row_digests = row_digests;
  if (shortened) completion.shortened = &*shortened;
  if (filtered) {
    filtered->finish(completion);
  } else {
    // What was read back stays as it is, but for the last chunk of a file that is shortened.
    const std::int64_t num_left = base::ceil_divide(final_rows(), chunk_samples);
    completion.kept = {base_offset, offset_of(shortened ? num_left - 1 : num_left)};
    h5::complete_file(partial->fd(), partial->path(), spec.fields, completion);
  }
  partial->sync();
}

/// Reads back what has not been read back yet: a disk can lose what it said it wrote, and libhdf5
/// does not always tell.
void DatasetWriter::Impl::verify() {
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(partial->fd(), 0, 0, POSIX_FADV_DONTNEED);
  const Dataset dataset = filtered ? Dataset::open(partial->path()) : open_partial();
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::digest_mismatch,
                target + ": " + what + " reads back otherwise than it was written; check the disk");
  };
  if ((!filtered && *dataset.impl()->images->linear_offset != base_offset) ||
      dataset.size() != final_rows() ||
      std::cmp_not_equal(dataset.info().digests_cover.size(), 1 + spec.fields.size())) {
    fail("the structure of the file");
  }
  for (const auto& [field, digest] : field_digests) {
    if (stored_digest(dataset, field) != digest) fail("field " + h5::printable(field));
  }
  if (!has_digests(dataset)) fail("the digests of the samples");
  if (!has_statistics(dataset.info())) fail("the statistics");
  if (const auto chunk = first_damaged(dataset)) fail("chunk " + std::to_string(*chunk));
}

/// Whether the file holds the statistics that it should: a constant channel has none.
bool DatasetWriter::Impl::has_statistics(const DatasetInfo& info) const {
  if (!statistics) return true;
  const auto& [mean, std] = statistics->channels;
  if (std::all_of(std.begin(), std.end(), [](double value) { return value > 0; }) && !std.empty() &&
      (!info.statistics || info.statistics->mean != mean || info.statistics->std != std)) {
    return false;
  }
  return statistics->class_counts.empty() || info.class_counts == statistics->class_counts;
}

/// Whether the file holds the digests that it should.
bool DatasetWriter::Impl::has_digests(const Dataset& dataset) const {
  const std::int64_t rows_at_once = kPieceBytes / std::int64_t{sizeof(std::uint64_t)};
  const auto stored =
      h5::open_array(*dataset.impl(), h5::kSampleDigests, Shape{final_rows()}, DType::uint64);
  std::vector<std::uint64_t> piece;
  for (std::int64_t row = 0; row < final_rows(); row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, final_rows() - row);
    piece.resize(static_cast<std::size_t>(count));
    h5::read_rows(*stored, row, count, std::as_writable_bytes(std::span(piece)), partial->path());
    if (!std::equal(piece.begin(), piece.end(), row_digests.begin() + row)) return false;
  }
  return true;
}

/// \throws Error if a chunk cannot be read.
std::optional<std::int64_t> DatasetWriter::Impl::first_damaged(const Dataset& dataset) {
  if (!read_back) {
    const VerifyResult result = verify_chunks(dataset, {.stop = stop});
    if (result.damaged.empty()) return std::nullopt;
    const DamagedChunk& first = result.damaged.front();
    if (first.code != ErrorCode::digest_mismatch) throw Error(first.code, first.reason);
    return first.chunk;
  }
  auto [unread, damaged] = read_back->finish();
  if (shortened) {
    // libhdf5 has written zeros to the rows that are gone.
    const std::int64_t last = base::ceil_divide(final_rows(), chunk_samples) - 1;
    unread.push_back({.file_offset = offset_of(last), .digest = last_chunk_digest});
  }
  const auto found =
      pipeline::find_damaged(partial->fd(), unread, piece_size(), partial->path(), stop);
  for (const std::size_t piece : found) damaged.push_back(unread[piece]);
  if (damaged.empty()) return std::nullopt;
  const auto first = std::min_element(damaged.begin(), damaged.end(), [](auto& a, auto& b) {
    return a.file_offset < b.file_offset;
  });
  return (first->file_offset - base_offset) / chunk_bytes();
}

/// Lets go of the files. Those of a run that can be resumed stay.
void DatasetWriter::Impl::let_go() noexcept {
  resumable = !published && groups && groups->committed();
  filtered.reset();
  groups.reset();
  read_back.reset();
  chunk_writer.reset();
  partial.reset();
  journal.reset();
}

/// \throws Error hdf5_failed if the pixels do not lie in one run.
Dataset DatasetWriter::Impl::open_partial() const {
  Dataset dataset = Dataset::open(partial->path());
  if (!dataset.impl()->images->linear_offset) {
    throw Error(ErrorCode::hdf5_failed,
                "this libhdf5 does not keep the chunks of " + partial->path() + " in one run");
  }
  return dataset;
}

DatasetWriter::DatasetWriter(const std::string& path, const DatasetSpec& spec,
                             const WriterOptions& options) {
  h5::validate(spec);
  impl_ = std::make_unique<Impl>(path, spec, options);
}

DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&&) noexcept = default;
DatasetWriter::~DatasetWriter() = default;

bool DatasetWriter::is_published(const std::string& path) {
  if (!exists(path) || exists(partial_of(path))) return false;
  try {
    OwnedFile::discard(journal_of(path));
  } catch (const Error&) {
    // Harmless where it is: without its partial file nobody goes on from it.
  }
  return true;
}

std::int64_t DatasetWriter::num_chunks() const noexcept { return impl_->num_chunks; }
std::int64_t DatasetWriter::chunk_samples() const noexcept { return impl_->chunk_samples; }
std::int64_t DatasetWriter::chunk_bytes() const noexcept { return impl_->chunk_bytes(); }
const std::vector<ResumedChunk>& DatasetWriter::resumed() const noexcept { return impl_->resumed; }

void DatasetWriter::write_chunk(std::int64_t chunk, std::span<const std::byte> rows,
                                std::string_view note) {
  impl_->write_chunk(chunk, rows, note);
}

void DatasetWriter::commit() {
  if (impl_->groups) impl_->groups->commit();
}

bool DatasetWriter::committed() const noexcept {
  return impl_->groups ? impl_->groups->committed() : impl_->resumable;
}

void DatasetWriter::set_statistics(DatasetStatistics statistics) {
  pipeline::check_statistics(impl_->spec, statistics);
  impl_->statistics = std::move(statistics);
}

void DatasetWriter::set_rows(std::int64_t num_rows, std::vector<FieldData> fields) {
  impl_->set_rows(num_rows, std::move(fields));
}

double DatasetWriter::read_back_seconds() const noexcept { return impl_->read_back_seconds; }

void DatasetWriter::close() {
  if (impl_->published) return;
  if (!impl_->partial) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": an earlier close failed");
  }
  try {
    // A chunk that libhdf5 could not take counts as not written, and cannot be written again.
    if (impl_->filtered) impl_->filtered->check();
  } catch (...) {
    impl_->let_go();
    throw;
  }
  impl_->check_all_written();
  try {
    impl_->finish();
  } catch (...) {
    // Whatever failed, what is on disk can no longer be trusted without being read again.
    impl_->let_go();
    throw;
  }
  impl_->let_go();
}

}  // namespace chunkio
