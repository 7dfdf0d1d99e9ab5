#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "h5/encoded_structure.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"
#include "image/sample_decoder.hpp"
#include "write/encoded_part.hpp"
#include "write/final_verification.hpp"
#include "write/journal.hpp"
#include "write/partial_file.hpp"
#include "write/run_description.hpp"
#include "write/sequential_bytes.hpp"
#include "write/writer_checks.hpp"

namespace chunkio {
namespace {

using write::SequentialBytes;
using write::WrittenBytes;

template <class Number>
std::span<const std::byte> bytes_of(const std::vector<Number>& numbers) {
  return std::as_bytes(std::span(numbers));
}

}  // namespace

struct EncodedWriter::Impl {
  Impl(std::string target_path, const EncodedSpec& about, const EncodedWriterOptions& options);

  void begin_afresh(bool discard_leftover);
  /// \returns false if there is nothing to go on with. \throws Error as the constructor.
  [[nodiscard]] bool take_up();
  /// What the file will say of itself. The size of its images is no matter.
  [[nodiscard]] DatasetSpec description(std::int64_t num_samples,
                                        std::vector<FieldData> fields) const;
  /// Reserves space for EncodedSpec::expected_bytes.
  void reserve_expected();
  /// Adds the images of a part if the file has them; returns whether it does.
  [[nodiscard]] bool accept(const write::EncodedPart& part);

  /// Notes an image whose bytes come next in the file.
  void note(std::int64_t bytes, std::int32_t height, std::int32_t width, std::uint8_t orientation,
            std::uint64_t digest);
  [[nodiscard]] write::EncodedPart uncommitted() const;
  void commit(std::string_view note);
  void add(const EncodedImage& image);
  void close(std::vector<FieldData> fields, const DatasetStatistics& statistics);
  /// A full disk, or a limit of file sizes, is an error before it is met: beyond the limit the
  /// kernel kills a process that does not expect it. \param end  in the file.
  void reserve(std::int64_t end) {
    if (end <= reserved) return;
    file->reserve(end);
    reserved = end;
  }
  /// Bytes that the rest of the file takes at most behind the images.
  [[nodiscard]] std::int64_t structure_bytes(const std::vector<FieldData>& fields) const;
  void write_all(const std::string& name, const h5::PlacedBytes& place,
                 std::span<const std::byte> bytes);
  void verify(const h5::EncodedPlaces& places);
  [[nodiscard]] Error invalid(const std::string& what) const {
    return {ErrorCode::invalid_argument, target + ": " + what};
  }

  /// Lets go of the files: those of a run that can be resumed stay.
  void let_go() noexcept {
    file.reset();
    journal.reset();
  }

  std::string target;
  EncodedWriterOptions options;
  EncodedSpec spec;
  std::string run;                         ///< From describe_run(); empty: no journal.
  std::optional<write::PartialFile> file;  ///< Absent once closed, well or badly.
  std::optional<write::Journal> journal;
  // In the journal.
  std::int64_t num_parts = 0;
  std::int64_t num_committed = 0;  ///< Images of these.
  std::chrono::steady_clock::time_point committed_at;
  std::vector<ResumedChunk> resumed;
  std::optional<SequentialBytes> data;
  std::int64_t reserved = 0;  ///< Up to there in the file.
  h5::EncodedTotals totals;
  std::vector<std::int64_t> indptr = {0};
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> orientations;
  std::vector<std::uint64_t> digests;
  std::vector<WrittenBytes> written;
  bool published = false;
};

EncodedWriter::Impl::Impl(std::string target_path, const EncodedSpec& about,
                          const EncodedWriterOptions& with)
    : target(std::move(target_path)), options(with), spec(about) {
  write::check_target(target, options.overwrite);
  if (spec.expected_bytes < 0) throw invalid("expected_bytes must be 0 or more");
  write::check_journal_options(options);
  if (!options.identity.empty()) {
    run = write::describe_run(options.identity, description(0, {}), {}, 0, "encoded images");
  }
  if (!options.resume || !take_up()) begin_afresh(options.overwrite || options.resume);
  committed_at = std::chrono::steady_clock::now();
}

void EncodedWriter::Impl::reserve_expected() {
  if (spec.expected_bytes == 0) return;
  // With what their structure takes, but for that of each image.
  const std::int64_t more = h5::kEncodedOffset + structure_bytes({});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - more;
  reserve(more + std::min(spec.expected_bytes, most));
}

DatasetSpec EncodedWriter::Impl::description(std::int64_t num_samples,
                                             std::vector<FieldData> fields) const {
  return {.num_samples = num_samples,
          .height = 1,
          .width = 1,
          .channels = 3,
          .channel_order = "RGB",
          .fields = std::move(fields),
          .class_names = spec.class_names,
          .attribute_names = spec.attribute_names,
          .split = spec.split,
          .order = spec.order,
          .seed = spec.seed,
          .options_json = spec.options_json,
          .shard = spec.shard};
}

void EncodedWriter::Impl::begin_afresh(bool discard_leftover) {
  file.emplace(write::PartialFile::begin_afresh(target, discard_leftover));
  data.emplace(file->fd(), file->path(), h5::kEncodedOffset);
  reserve_expected();
  if (run.empty()) return;
  journal.emplace(write::Journal::create(write::journal_of(target),
                                         {.first_chunk_offset = h5::kEncodedOffset, .run = run}));
  write::sync_folder(write::folder_of(target));
}

bool EncodedWriter::Impl::take_up() {
  auto left = write::Journal::take_up(write::journal_of(target));
  if (!left) return false;
  auto left_file = write::PartialFile::take_up(write::partial_of(target), write::OwnerLock::shared);
  if (!left_file) return false;
  journal.emplace(*std::move(left));
  file.emplace(*std::move(left_file));
  write::check_same_run(journal->header().run, run, target);
  data.emplace(file->fd(), file->path(), h5::kEncodedOffset);
  for (const write::ChunkRecord& record : journal->take_chunks()) {
    if (record.chunk != num_parts) break;
    auto found = write::from_record(record);
    if (!found || !accept(found->part)) break;
    resumed.push_back(
        {.chunk = num_parts, .num_rows = record.num_rows, .note = std::move(found->note)});
    ++num_parts;
  }
  num_committed = std::ssize(digests);
  if (num_parts == 0) {
    file->remove_at_end();
    journal->file().remove_at_end();
  }
  // A run that was killed while it closed the file has begun to write its structure.
  const std::vector<std::byte> nothing(static_cast<std::size_t>(h5::kEncodedOffset));
  base::write_at(file->fd(), 0, nothing, file->path());
  base::resize_file(file->fd(), h5::kEncodedOffset + indptr.back(), file->path());
  reserve_expected();
  journal->keep_first(resumed.size());
  return true;
}

bool EncodedWriter::Impl::accept(const write::EncodedPart& found) {
  const std::int64_t size = file->size();
  std::int64_t offset = h5::kEncodedOffset + indptr.back();
  SequentialBytes with_part = *data;
  std::vector<std::byte> image;
  for (std::size_t i = 0; i < found.digests.size(); ++i) {
    if (options.stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, target + ": stopped while an earlier run was read back");
    }
    if (found.bytes[i] > size - offset) return false;
    image.resize(static_cast<std::size_t>(found.bytes[i]));
    base::read_at(file->fd(), offset, image, file->path());
    if (base::digest(image) != found.digests[i]) return false;
    with_part.skip(image);
    offset += found.bytes[i];
  }
  data.emplace(with_part);
  for (std::size_t i = 0; i < found.digests.size(); ++i) {
    note(found.bytes[i], found.sizes[2 * i], found.sizes[2 * i + 1], found.orientations[i],
         found.digests[i]);
  }
  return true;
}

void EncodedWriter::Impl::note(std::int64_t bytes, std::int32_t height, std::int32_t width,
                               std::uint8_t orientation, std::uint64_t digest) {
  digests.push_back(digest);
  indptr.push_back(indptr.back() + bytes);
  sizes.push_back(height);
  sizes.push_back(width);
  orientations.push_back(orientation);
  totals.max_height = std::max<std::int64_t>(totals.max_height, height);
  totals.max_width = std::max<std::int64_t>(totals.max_width, width);
  totals.max_pixels = std::max(totals.max_pixels, std::int64_t{height} * width);
  totals.turned = totals.turned || orientation != 1;
}

write::EncodedPart EncodedWriter::Impl::uncommitted() const {
  write::EncodedPart part{
      .sizes = {sizes.begin() + 2 * num_committed, sizes.end()},
      .orientations = {orientations.begin() + num_committed, orientations.end()},
      .digests = {digests.begin() + num_committed, digests.end()}};
  for (auto end = indptr.begin() + num_committed + 1; end != indptr.end(); ++end) {
    part.bytes.push_back(*end - *(end - 1));
  }
  return part;
}

void EncodedWriter::Impl::commit(std::string_view note_of_caller) {
  if (published) return;
  if (!file) throw invalid("an earlier call failed");
  if (!journal || num_committed == std::ssize(digests)) return;
  constexpr std::int64_t kMostNote = write::kMaxNoteBytes / 2;
  const write::ChunkRecord record = write::to_record(num_parts, uncommitted(), note_of_caller);
  if (std::cmp_greater(note_of_caller.size(), kMostNote) ||
      std::cmp_greater(record.note.size(), write::kMaxNoteBytes)) {
    throw invalid("a note of " + std::to_string(note_of_caller.size()) + " bytes on " +
                  std::to_string(record.num_rows) + " images is too large; commit more often");
  }
  try {
    data->flush();
    file->sync_content();
    journal->append(std::span(&record, 1));
    journal->sync();
  } catch (...) {
    let_go();
    throw;
  }
  file->keep();
  journal->file().keep();
  ++num_parts;
  num_committed = std::ssize(digests);
  committed_at = std::chrono::steady_clock::now();
}

void EncodedWriter::Impl::add(const EncodedImage& image) {
  const auto require = [&](bool met, const std::string& what) {
    if (!met) throw invalid("image " + std::to_string(std::ssize(digests)) + what);
  };
  if (!file) {
    throw invalid(published ? "an image was added after close" : "an earlier call failed");
  }
  const auto is_side = [](std::int64_t side) { return 1 <= side && side <= image::kMaxSide; };
  require(!image.bytes.empty(), " has no bytes");
  require(std::cmp_less_equal(image.bytes.size(), h5::kMaxSampleBytes), " has more than 1 GiB");
  require(is_side(image.height) && is_side(image.width),
          " cannot have " + std::to_string(image.height) + "x" + std::to_string(image.width) +
              " pixels; sides are 1 to 65535");
  require(1 <= image.orientation && image.orientation <= image::Orientation::kMost,
          " cannot have orientation " + std::to_string(image.orientation) + "; there are 1 to 8");
  const std::uint64_t digest = base::digest(image.bytes);
  if (image.digest && *image.digest != digest) {
    throw Error(ErrorCode::digest_mismatch, target + ": image " +
                                                std::to_string(std::ssize(digests)) +
                                                " does not match the digest that it comes with");
  }
  try {
    const std::int64_t end = h5::kEncodedOffset + indptr.back() + std::ssize(image.bytes);
    if (end > reserved) reserve(end + std::int64_t{SequentialBytes::kBlockBytes});
    data->add(image.bytes);
    note(std::ssize(image.bytes), static_cast<std::int32_t>(image.height),
         static_cast<std::int32_t>(image.width), image.orientation, digest);
  } catch (...) {
    let_go();
    throw;
  }
}

void EncodedWriter::Impl::close(std::vector<FieldData> fields,
                                const DatasetStatistics& statistics) {
  totals.rows = std::ssize(digests);
  totals.num_bytes = indptr.back();
  if (totals.rows == 0) throw invalid("there are no images");
  const DatasetSpec about = description(totals.rows, std::move(fields));
  h5::validate(about);
  try {
    reserve(h5::kEncodedOffset + totals.num_bytes + structure_bytes(about.fields));
    const std::uint64_t digest = data->finish();
    std::vector<std::byte> small;
    if (totals.num_bytes < h5::kAlignedBytes) {
      small.resize(static_cast<std::size_t>(totals.num_bytes));
      base::read_at(file->fd(), h5::kEncodedOffset, small, file->path());
    }
    const h5::EncodedPlaces places =
        h5::write_encoded_structure(file->fd(), file->path(), totals, about, statistics);
    if (!small.empty()) base::write_at(file->fd(), places.data.offset, small, file->path());
    for (const h5::DigestedBytes& one : places.structure) {
      written.push_back({"the structure of the file", one.place, one.digest});
    }
    written.push_back({"images/data", places.data, digest});
    write_all("images/indptr", places.indptr, bytes_of(indptr));
    write_all("images/sizes", places.sizes, bytes_of(sizes));
    if (places.orientations) {
      write_all("images/orientations", *places.orientations, bytes_of(orientations));
    }
    write_all("sample_digests", places.digests, bytes_of(digests));
    for (std::size_t i = 0; i < about.fields.size(); ++i) {
      SequentialBytes out(file->fd(), file->path(), places.fields[i].offset);
      about.fields[i].for_each_block([&](std::span<const std::byte> rows) { out.add(rows); });
      written.push_back({about.fields[i].info.name, places.fields[i], out.finish()});
    }
    file->sync();
    verify(places);
    file->publish(target, options.overwrite);
  } catch (...) {
    let_go();
    throw;
  }
  published = true;
  num_parts = 0;
  file.reset();
  write::sync_published(target);
  if (journal) journal->file().remove_at_end();
  journal.reset();
}

std::int64_t EncodedWriter::Impl::structure_bytes(const std::vector<FieldData>& fields) const {
  constexpr std::int64_t kDescription = std::int64_t{1} << 20;
  // Offset, size, orientation and digest.
  std::int64_t row_bytes =
      sizeof(std::int64_t) + 2 * sizeof(std::int32_t) + 1 + sizeof(std::uint64_t);
  for (const FieldData& field : fields) {
    row_bytes += static_cast<std::int64_t>(Dataset::row_bytes(field.info));
  }
  return kDescription + totals.rows * row_bytes + std::ssize(spec.options_json);
}

void EncodedWriter::Impl::write_all(const std::string& name, const h5::PlacedBytes& place,
                                    std::span<const std::byte> bytes) {
  base::write_at(file->fd(), place.offset, bytes, file->path());
  written.push_back({name, place, base::digest(bytes)});
}

void EncodedWriter::Impl::verify(const h5::EncodedPlaces& places) {
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
  if (h5::find_encoded_data(file->path()) != places.data) {
    throw write::read_back_otherwise(target, "the structure of the file");
  }
  for (const WrittenBytes& one : written) {
    if (!one.is_in(file->fd(), file->path(), options.stop)) {
      throw write::read_back_otherwise(target, one.name);
    }
  }
}

EncodedWriter::EncodedWriter(const std::string& path, const EncodedSpec& spec,
                             const EncodedWriterOptions& options)
    : impl_(std::make_unique<Impl>(path, spec, options)) {}

EncodedWriter::EncodedWriter(EncodedWriter&&) noexcept = default;
EncodedWriter& EncodedWriter::operator=(EncodedWriter&&) noexcept = default;
EncodedWriter::~EncodedWriter() = default;

std::int64_t EncodedWriter::num_rows() const noexcept { return std::ssize(impl_->digests); }

const std::vector<ResumedChunk>& EncodedWriter::resumed() const noexcept { return impl_->resumed; }

void EncodedWriter::add(const EncodedImage& image) { impl_->add(image); }

bool EncodedWriter::commit_due() const noexcept {
  constexpr std::chrono::seconds kLongest{2};
  const auto committed_bytes = impl_->indptr[static_cast<std::size_t>(impl_->num_committed)];
  return impl_->journal && impl_->num_committed < num_rows() &&
         (impl_->indptr.back() - committed_bytes >= impl_->options.commit_bytes ||
          std::chrono::steady_clock::now() - impl_->committed_at >= kLongest);
}

void EncodedWriter::commit(std::string_view note) { impl_->commit(note); }

bool EncodedWriter::committed() const noexcept { return impl_->num_parts > 0; }

void EncodedWriter::close(std::vector<FieldData> fields, const DatasetStatistics& statistics) {
  if (impl_->published) return;
  if (!impl_->file) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": an earlier call failed");
  }
  impl_->close(std::move(fields), statistics);
}

}  // namespace chunkio
