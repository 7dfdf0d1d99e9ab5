#include "write/placed_chunks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "base/positional_io.hpp"
#include "h5/dataset_impl.hpp"
#include "write/final_verification.hpp"

namespace chunkio::write {

PlacedChunks::PlacedChunks(PartialFile file, const ChunkLedger& ledger, const WriteRun& run,
                           const DatasetSpec& spec, const h5::SkeletonOptions& skeleton)
    : ledger_(ledger), run_(run), file_(std::move(file)) {
  const auto pixels = base::checked_multiply(ledger.num_chunks(), ledger.chunk_bytes());
  const auto bytes = base::checked_add(pixels.value_or(0), 2 * run.structure_bytes);
  if (!pixels || !bytes) {
    throw Error(ErrorCode::invalid_argument, run.target + " would be larger than a file can be");
  }
  reserve_space();

  h5::write_skeleton(file_.fd(), file_.path(), spec, skeleton);

  // The pixels' place comes from the file, by the way every reader takes.
  base_offset_ = *internal::Access::impl(open_in_one_run())->leading->linear_offset;
  file_bytes_ = std::max(file_.size(), offset_of(ledger.num_chunks()));
  base::resize_file(file_.fd(), file_bytes_, file_.path());
  reserve_space();  // once more: setting the length gave back what lay behind it
  file_.sync();
  if (!run.description.empty()) {
    journal_.emplace(
        Journal::create(journal_of(run.target), {.first_chunk_offset = base_offset_,
                                                 .chunk_bytes = ledger.chunk_bytes(),
                                                 .num_chunks = ledger.num_chunks(),
                                                 .file_bytes = file_bytes_,
                                                 .structure_digest = structure().digest(),
                                                 .run = run.description}));
    sync_folder(folder_of(run.target));
    begin_groups();
  }
  writer_.emplace(file_.fd(), file_.path());
}

/// Everything that a run can want later is asked for now, when a full disk costs no work: pixels,
/// structure, and the part of it that is written again at the end.
void PlacedChunks::reserve_space() const {
  file_.reserve(ledger_.num_chunks() * ledger_.chunk_bytes() + 2 * run_.structure_bytes);
}

void PlacedChunks::begin_groups() {
  constexpr std::int64_t kRecordBytes = 256;  // with a note of usual length
  journal_->file().reserve(journal_->file().size() + ledger_.num_chunks() * kRecordBytes +
                           structure().journal_bytes());
  verifier_.emplace(file_.fd(), file_.path(), piece_size());
  groups_.emplace(
      file_, *journal_, run_.commit_bytes, !ledger_.resumed().empty(),
      [this](std::span<const ChunkRecord> group) {
        std::vector<ExpectedBytes> pieces;
        for (const ChunkRecord& record : group) {
          pieces.push_back({.file_offset = offset_of(record.chunk), .digest = record.digest});
        }
        verifier_->add(pieces);
      });
}

void PlacedChunks::check() {
  if (groups_) groups_->check();
}

std::optional<WriteVerifier::Writing> PlacedChunks::writing() {
  if (!verifier_) return std::nullopt;
  return std::optional<WriteVerifier::Writing>(std::in_place, *verifier_);
}

void PlacedChunks::write(std::int64_t chunk, std::span<const std::byte> rows, std::uint64_t digest,
                         std::string_view note) {
  const auto bytes = static_cast<std::int64_t>(rows.size());
  // Before the pixels: what lies in the file without a record would not be read back.
  ChunkRecord record = {
      .chunk = chunk, .num_rows = bytes / ledger_.sample_bytes(), .digest = digest, .note = {}};
  if (groups_) record.note = note;
  const std::vector<std::byte> padding(static_cast<std::size_t>(ledger_.chunk_bytes() - bytes));
  writer_->write(offset_of(chunk), rows);
  writer_->write(offset_of(chunk) + bytes, padding);
  if (groups_) groups_->add(std::move(record), ledger_.chunk_bytes());
}

void PlacedChunks::commit() {
  if (groups_) groups_->commit();
}

bool PlacedChunks::committed() const noexcept { return groups_ && groups_->committed(); }

void PlacedChunks::finish_chunks() {
  if (groups_) {
    groups_->commit();
    structure().save(*journal_);
  } else {
    file_.sync();
  }
}

void PlacedChunks::complete(std::span<const FieldData> fields, h5::Completion completion) {
  std::int64_t num_kept = ledger_.num_chunks();
  if (completion.shortened != nullptr) {
    // What was read back stays as it is, but for the last chunk: libhdf5 writes zeros to the rows
    // that are gone. Its digest, before those of fields are chained on.
    num_kept = ledger_.chunks_of(completion.shortened->num_samples) - 1;
    shortened_ = {.file_offset = offset_of(num_kept), .digest = ledger_.chunk_digest(num_kept)};
  }
  completion.kept = {base_offset_, offset_of(num_kept)};
  h5::complete_file(file_.fd(), file_.path(), fields, completion);
  file_.sync();
}

/// \throws Error hdf5_failed if the pixels do not lie in one run.
Dataset PlacedChunks::open_in_one_run() const {
  Dataset dataset = Dataset::open(file_.path());
  if (!internal::Access::impl(dataset)->leading->linear_offset) {
    throw Error(ErrorCode::hdf5_failed,
                "this libhdf5 does not keep the chunks of " + file_.path() + " in one run");
  }
  return dataset;
}

Dataset PlacedChunks::open() const {
  Dataset dataset = open_in_one_run();
  if (*internal::Access::impl(dataset)->leading->linear_offset != base_offset_) {
    throw read_back_otherwise(run_.target, "the structure of the file");
  }
  return dataset;
}

std::optional<std::int64_t> PlacedChunks::first_damaged(const Dataset& dataset,
                                                        std::stop_token stop) {
  if (!verifier_) return first_damaged_chunk(dataset, std::move(stop));
  auto [unread, damaged] = verifier_->finish();
  if (shortened_) unread.push_back(*shortened_);
  const auto found = find_damaged(file_.fd(), unread, piece_size(), file_.path(), std::move(stop));
  for (const std::size_t piece : found) damaged.push_back(unread[piece]);
  if (damaged.empty()) return std::nullopt;
  const auto first = std::min_element(damaged.begin(), damaged.end(), [](auto& a, auto& b) {
    return a.file_offset < b.file_offset;
  });
  return (first->file_offset - base_offset_) / ledger_.chunk_bytes();
}

void PlacedChunks::published() noexcept {
  if (journal_) journal_->file().remove_at_end();
}

}  // namespace chunkio::write
