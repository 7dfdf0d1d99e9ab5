#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/statistics.hpp>
#include <chunkio/version.hpp>

#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"
#include "base/uuid.hpp"
#include "h5/skeleton_writer.hpp"
#include "h5/stored_array.hpp"
#include "write/chunk_ledger.hpp"
#include "write/chunk_store.hpp"
#include "write/filtered_chunks.hpp"
#include "write/final_verification.hpp"
#include "write/journal.hpp"
#include "write/partial_file.hpp"
#include "write/placed_chunks.hpp"
#include "write/run_description.hpp"
#include "write/writer_checks.hpp"

namespace chunkio {
namespace {

using write::exists;
using write::journal_of;
using write::partial_of;
using write::PartialFile;

/// Values of fields may be large, and nobody needs a copy.
DatasetSpec without_values(const DatasetSpec& spec) {
  DatasetSpec copy = {.num_samples = spec.num_samples,
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
  for (const FieldData& field : spec.fields) copy.fields.push_back({field.info, {}, {}});
  return copy;
}

/// Adds whole images.
void add_images(PixelStatistics& sums, std::span<const std::byte> rows, std::int64_t sample_bytes) {
  const std::span images(reinterpret_cast<const std::uint8_t*>(rows.data()), rows.size());
  const auto image_bytes = static_cast<std::size_t>(sample_bytes);
  for (std::size_t at = 0; at < images.size(); at += image_bytes) {
    sums.add(images.subspan(at, image_bytes));
  }
}

}  // namespace

struct DatasetWriter::Impl {
  Impl(std::string target_path, const DatasetSpec& dataset, const WriterOptions& options);
  [[nodiscard]] std::unique_ptr<write::ChunkStore> begin_afresh(const DatasetSpec& dataset,
                                                                bool discard_leftover) const;

  void write_chunk(std::int64_t chunk, std::span<const std::byte> rows, std::string_view note);
  void set_rows(std::int64_t num_rows, std::vector<FieldData> fields);

  void close();
  void finish();
  [[nodiscard]] std::int64_t final_rows() const noexcept {
    return shortened ? shortened->num_samples : ledger.num_samples();
  }
  void let_go() noexcept;

  write::WriteRun run;
  bool overwrite;
  ChunkFilter filter;
  DatasetSpec spec;                   ///< Without the values of its fields.
  write::FieldDigests field_digests;  ///< Of the values that the file shall hold.
  write::ChunkLedger ledger;
  std::unique_ptr<write::ChunkStore> chunks;  ///< Null once closed, well or badly.

  bool published = false;
  bool resumable = false;  ///< Once closed badly: whether the files were kept.
  double read_back_seconds = 0;
  std::optional<DatasetStatistics> statistics;  ///< By set_statistics().
  // Absent if they are not computed.
  std::optional<PixelStatistics> pixel_sums;
  std::mutex sums_mutex;
  std::vector<std::int64_t> class_counts;
  std::optional<DatasetSpec> shortened;  ///< By set_rows().
};

DatasetWriter::Impl::Impl(std::string target_path, const DatasetSpec& dataset,
                          const WriterOptions& options)
    : run{.target = std::move(target_path),
          .description = {},
          .structure_bytes = h5::skeleton_bytes(dataset),
          .commit_bytes = options.commit_bytes,
          .stop = options.stop},
      overwrite(options.overwrite),
      filter(options.filter),
      spec(without_values(dataset)),
      field_digests(write::digest_fields(dataset.fields)),
      ledger(dataset.num_samples, write::checked_chunk_samples(dataset, options),
             dataset.height * dataset.width * dataset.channels) {
  write::check_target(run.target, overwrite);
  write::check_options(options);
  if (filter.deflate_level > 0 && ledger.chunk_bytes() > h5::kMaxFilteredChunkBytes) {
    throw Error(ErrorCode::invalid_argument,
                "a filtered chunk of " + std::to_string(ledger.chunk_bytes()) +
                    " bytes would exceed " + std::to_string(h5::kMaxFilteredChunkBytes) +
                    ", which nobody could read; lower chunk_samples",
                "chunk_samples");
  }
  if (!options.identity.empty()) {
    run.description = write::describe_run(options.identity, dataset, field_digests,
                                          ledger.chunk_samples(), filter.to_string());
  }
  if (options.statistics) {
    pixel_sums.emplace(dataset.channels, dataset.layout);
    class_counts = count_classes(dataset.fields, dataset.class_names);
  }
  if (options.resume) chunks = write::PlacedChunks::take_up(ledger, run);
  if (!chunks) chunks = begin_afresh(dataset, overwrite || options.resume);
}

std::unique_ptr<write::ChunkStore> DatasetWriter::Impl::begin_afresh(const DatasetSpec& dataset,
                                                                     bool discard_leftover) const {
  auto file = PartialFile::begin_afresh(run.target, discard_leftover);
  const h5::SkeletonOptions skeleton{
      .chunk_samples = ledger.chunk_samples(),
      .creator = "chunkio " + std::string(version()),
      .uuid = base::random_uuid(),
      .cache = recommend_cache(ledger.num_chunks(), ledger.chunk_bytes()),
      .filter = filter};
  if (filter.deflate_level == 0) {
    return std::make_unique<write::PlacedChunks>(std::move(file), ledger, run, dataset, skeleton);
  }
  // Not for the chunks: nobody knows their size.
  file.reserve(2 * run.structure_bytes);
  return std::make_unique<write::FilteredChunks>(std::move(file), dataset, skeleton,
                                                 ledger.chunk_bytes());
}

void DatasetWriter::Impl::write_chunk(std::int64_t chunk, std::span<const std::byte> rows,
                                      std::string_view note) {
  if (!chunks) {
    throw Error(ErrorCode::invalid_argument, run.target + ": write_chunk after close");
  }
  chunks->check();
  const std::string shown = "chunk " + std::to_string(chunk) + " of " + run.target;
  if (chunk < 0 || chunk >= ledger.num_chunks()) {
    throw Error(ErrorCode::invalid_argument,
                shown + ": there are " + std::to_string(ledger.num_chunks()) + " chunks");
  }
  const auto bytes = static_cast<std::int64_t>(rows.size());
  const std::int64_t sample_bytes = ledger.sample_bytes();
  const std::int64_t most = ledger.rows_of(chunk) * sample_bytes;
  if (bytes == 0 || bytes > most || bytes % sample_bytes != 0) {
    throw Error(ErrorCode::invalid_argument, shown + " takes " + std::to_string(most) + " bytes (" +
                                                 std::to_string(sample_bytes) + " a sample), got " +
                                                 std::to_string(bytes));
  }
  if (std::cmp_greater(note.size(), write::kMaxNoteBytes)) {
    throw Error(ErrorCode::invalid_argument, shown + ": a note has at most " +
                                                 std::to_string(write::kMaxNoteBytes) +
                                                 " bytes, got " + std::to_string(note.size()));
  }
  if (!ledger.claim(chunk)) {
    throw Error(ErrorCode::invalid_argument, shown + " was written twice");
  }
  const auto writing = chunks->writing();
  std::optional<PixelStatistics> sums;
  try {
    if (pixel_sums) add_images(sums.emplace(spec.channels, spec.layout), rows, sample_bytes);
    ledger.digest_rows(chunk, rows);
    chunks->write(chunk, rows, ledger.chunk_digest(chunk), note);
  } catch (...) {
    ledger.release(chunk);
    throw;
  }
  ledger.set_written(chunk, bytes / sample_bytes);
  if (sums) {
    const std::lock_guard lock(sums_mutex);
    pixel_sums->merge(*sums);
  }
}

void DatasetWriter::Impl::set_rows(std::int64_t num_rows, std::vector<FieldData> fields) {
  if (!chunks) throw Error(ErrorCode::invalid_argument, run.target + ": set_rows after close");
  if (filter.deflate_level > 0 && num_rows != ledger.num_samples()) {
    throw Error(ErrorCode::unsupported,
                run.target + ": a filtered file cannot be shortened; write it without filter");
  }
  if (num_rows < 1 || num_rows > ledger.num_samples()) {
    throw Error(ErrorCode::invalid_argument, run.target + ": rows must be 1 to " +
                                                 std::to_string(ledger.num_samples()) + ", got " +
                                                 std::to_string(num_rows));
  }
  const auto same_kind = [](const FieldData& a, const FieldData& b) {
    return a.info.name == b.info.name && a.info.dtype == b.info.dtype &&
           a.info.row_shape == b.info.row_shape;
  };
  if (!std::equal(fields.begin(), fields.end(), spec.fields.begin(), spec.fields.end(),
                  same_kind)) {
    throw Error(ErrorCode::invalid_argument,
                run.target + ": set_rows needs the fields of the specification, in their order");
  }
  DatasetSpec fewer = spec;
  fewer.num_samples = num_rows;
  fewer.fields = std::move(fields);
  h5::validate(fewer, ledger.num_samples());
  field_digests = write::digest_fields(fewer.fields);
  if (pixel_sums) class_counts = count_classes(fewer.fields, fewer.class_names);
  shortened = std::move(fewer);
}

void DatasetWriter::Impl::close() {
  try {
    // After a failure that is final a chunk may count as not written, and cannot be written again.
    chunks->check();
  } catch (...) {
    let_go();
    throw;
  }
  ledger.check_written(final_rows(), run.target);
  try {
    finish();
  } catch (...) {
    // Whatever failed, what is on disk can no longer be trusted without being read again.
    let_go();
    throw;
  }
  let_go();
}

void DatasetWriter::Impl::finish() {
  chunks->finish_chunks();
  if (pixel_sums && !statistics) {
    // What an earlier run wrote was not seen by this one.
    chunks->read_resumed([this](std::span<const std::byte> rows) {
      add_images(*pixel_sums, rows, ledger.sample_bytes());
    });
    statistics = {pixel_sums->result(), class_counts, pixel_sums->mean_picture_std(), {}};
  }
  h5::Completion completion;
  completion.statistics = statistics;
  completion.row_digests = ledger.row_digests(final_rows());
  if (shortened) completion.shortened = &*shortened;
  chunks->complete(spec.fields, completion);
  base::Stopwatch watch;
  write::verify_finished(*chunks, {field_digests, completion.row_digests, statistics}, run.target,
                         run.stop);
  read_back_seconds = watch.lap();
  chunks->file().publish(run.target, overwrite);
  published = true;
  write::sync_published(run.target);
  chunks->published();
}

/// Lets go of the files. Those of a run that can be resumed stay.
void DatasetWriter::Impl::let_go() noexcept {
  resumable = !published && chunks->committed();
  chunks.reset();
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
    PartialFile::discard(journal_of(path));
  } catch (const Error&) {
    // Harmless where it is: without its partial file nobody goes on from it.
  }
  return true;
}

std::int64_t DatasetWriter::num_chunks() const noexcept { return impl_->ledger.num_chunks(); }
std::int64_t DatasetWriter::chunk_samples() const noexcept { return impl_->ledger.chunk_samples(); }
std::int64_t DatasetWriter::chunk_bytes() const noexcept { return impl_->ledger.chunk_bytes(); }
const std::vector<ResumedChunk>& DatasetWriter::resumed() const noexcept {
  return impl_->ledger.resumed();
}

void DatasetWriter::write_chunk(std::int64_t chunk, std::span<const std::byte> rows,
                                std::string_view note) {
  impl_->write_chunk(chunk, rows, note);
}

void DatasetWriter::commit() {
  if (impl_->chunks) impl_->chunks->commit();
}

bool DatasetWriter::committed() const noexcept {
  return impl_->chunks ? impl_->chunks->committed() : impl_->resumable;
}

void DatasetWriter::set_statistics(DatasetStatistics statistics) {
  write::check_statistics(impl_->spec, statistics);
  impl_->statistics = std::move(statistics);
}

void DatasetWriter::set_rows(std::int64_t num_rows, std::vector<FieldData> fields) {
  impl_->set_rows(num_rows, std::move(fields));
}

double DatasetWriter::read_back_seconds() const noexcept { return impl_->read_back_seconds; }

void DatasetWriter::close() {
  if (impl_->published) return;
  if (!impl_->chunks) {
    throw Error(ErrorCode::invalid_argument, impl_->run.target + ": an earlier close failed");
  }
  impl_->close();
}

}  // namespace chunkio
