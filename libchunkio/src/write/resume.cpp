/// Going on with what an earlier run left: its partial file and journal.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/positional_io.hpp"
#include "write/placed_chunks.hpp"
#include "write/run_description.hpp"

namespace chunkio::write {
namespace {

void check_header(const JournalHeader& header, const ChunkLedger& ledger, const WriteRun& run) {
  check_same_run(header.run, run.description, run.target);
  if (header.chunk_bytes != ledger.chunk_bytes() || header.num_chunks != ledger.num_chunks() ||
      header.first_chunk_offset < 0 || header.first_chunk_offset > header.file_bytes ||
      (header.file_bytes - header.first_chunk_offset) / header.chunk_bytes < header.num_chunks) {
    throw Error(ErrorCode::corrupt_data,
                journal_of(run.target) + " contradicts itself; " + kStartAgain, "overwrite",
                "resume");
  }
}

}  // namespace

std::unique_ptr<PlacedChunks> PlacedChunks::take_up(ChunkLedger& ledger, const WriteRun& run) {
  auto journal = Journal::take_up(journal_of(run.target));
  if (!journal) return nullptr;
  auto file = PartialFile::take_up(partial_of(run.target), OwnerLock::shared);
  if (!file) return nullptr;
  check_header(journal->header(), ledger, run);
  std::unique_ptr<PlacedChunks> chunks(
      new PlacedChunks(*std::move(journal), *std::move(file), ledger, run));
  chunks->check_structure();
  chunks->accept_chunks(ledger);
  chunks->reserve_space();
  chunks->begin_groups();
  if (ledger.resumed().empty()) {
    chunks->file_.remove_at_end();
    chunks->journal_->file().remove_at_end();
  }
  chunks->writer_.emplace(chunks->file_.fd(), chunks->file_.path());
  return chunks;
}

PlacedChunks::PlacedChunks(Journal journal, PartialFile file, const ChunkLedger& ledger,
                           const WriteRun& run)
    : ledger_(ledger),
      run_(run),
      journal_(std::move(journal)),
      file_(std::move(file)),
      base_offset_(journal_->header().first_chunk_offset),
      file_bytes_(journal_->header().file_bytes) {}

/// Puts the structure back if a run was killed while it changed it: libhdf5 may not open such a
/// file.
void PlacedChunks::check_structure() {
  if (!journal_->saved().empty()) structure().restore(*journal_);
  if (file_.size() != file_bytes_ || structure().digest() != journal_->header().structure_digest) {
    throw Error(
        ErrorCode::corrupt_data,
        file_.path() + " is damaged: its structure is not what its journal says; " + kStartAgain,
        "overwrite", "resume");
  }
  journal_->forget_saved();
}

/// Believes no record: what lies at a chunk's place decides.
void PlacedChunks::accept_chunks(ChunkLedger& ledger) {
  std::vector<ChunkRecord> records = journal_->take_chunks();
  std::vector<ChunkRecord*> last(static_cast<std::size_t>(ledger.num_chunks()));
  for (ChunkRecord& record : records) {
    if (record.chunk < 0 || record.chunk >= ledger.num_chunks() || record.num_rows < 1 ||
        record.num_rows > ledger.rows_of(record.chunk)) {
      continue;
    }
    last[static_cast<std::size_t>(record.chunk)] = &record;
  }
  std::erase(last, nullptr);
  std::vector<ExpectedBytes> pieces;
  for (const ChunkRecord* record : last) {
    pieces.push_back({.file_offset = offset_of(record->chunk), .digest = record->digest});
  }
  const auto take_sound = [&](std::size_t piece, std::span<const std::uint64_t> rows) {
    ledger.set_row_digests(last[piece]->chunk, rows);
  };
  const auto damaged =
      find_damaged(file_.fd(), pieces, piece_size(), file_.path(), run_.stop, take_sound);
  for (const std::size_t piece : damaged) last[piece] = nullptr;
  std::erase(last, nullptr);
  for (ChunkRecord* record : last) {
    ledger.set_resumed(
        {.chunk = record->chunk, .num_rows = record->num_rows, .note = std::move(record->note)});
  }
}

void PlacedChunks::read_resumed(const std::function<void(std::span<const std::byte>)>& take) const {
  constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
  const std::int64_t sample_bytes = ledger_.sample_bytes();
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kPieceBytes / sample_bytes);
  std::vector<std::byte> piece;
  for (const ResumedChunk& chunk : ledger_.resumed()) {
    for (std::int64_t row = 0; row < chunk.num_rows; row += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, chunk.num_rows - row);
      piece.resize(static_cast<std::size_t>(count * sample_bytes));
      base::read_at(file_.fd(), offset_of(chunk.chunk) + row * sample_bytes, piece, file_.path());
      take(piece);
    }
  }
}

}  // namespace chunkio::write
