/// Unfiltered chunks, written in place by position, without libhdf5.
///
/// With a journal they are brought to disk in groups, recorded there, and read back while nobody
/// writes; another run can go on from it (resume.cpp).
#pragma once

#include <memory>
#include <string>

#include "h5/skeleton_writer.hpp"
#include "io/range_writer.hpp"
#include "write/chunk_ledger.hpp"
#include "write/chunk_store.hpp"
#include "write/chunk_verification.hpp"
#include "write/file_structure.hpp"
#include "write/group_commit.hpp"
#include "write/journal.hpp"

namespace chunkio::write {

/// One run of a writer: what it writes to, and what it was given.
struct WriteRun {
  std::string target;
  std::string description;  ///< From describe_run(); empty: no journal.
  /// Bytes of structure and fields, at most: what completing the file may take once more.
  std::int64_t structure_bytes = 0;
  std::int64_t commit_bytes = 0;
  std::stop_token stop = {};
};

class PlacedChunks final : public ChunkStore {
 public:
  /// Creates structure and journal of the empty `file`. Keeps references to `ledger` and `run`.
  /// \throws Error invalid_argument (too large for a file), io_failed, no_space, hdf5_failed.
  PlacedChunks(PartialFile file, const ChunkLedger& ledger, const WriteRun& run,
               const DatasetSpec& spec, const h5::SkeletonOptions& skeleton);
  /// Goes on with what an earlier run left, and enters its chunks in the ledger.
  /// \returns null if there is nothing to go on with. \throws Error as the constructor of
  ///          DatasetWriter; nothing is lost then.
  [[nodiscard]] static std::unique_ptr<PlacedChunks> take_up(ChunkLedger& ledger,
                                                             const WriteRun& run);

  [[nodiscard]] PartialFile& file() noexcept override { return file_; }
  void check() override;
  [[nodiscard]] std::optional<WriteVerifier::Writing> writing() override;
  void write(std::int64_t chunk, std::span<const std::byte> rows, std::uint64_t digest,
             std::string_view note) override;
  void commit() override;
  [[nodiscard]] bool committed() const noexcept override;
  void read_resumed(const std::function<void(std::span<const std::byte>)>& take) const override;
  void finish_chunks() override;
  void complete(std::span<const FieldData> fields, h5::Completion completion) override;
  [[nodiscard]] Dataset open() const override;
  [[nodiscard]] std::optional<std::int64_t> first_damaged(const Dataset& dataset,
                                                          std::stop_token stop) override;
  void published() noexcept override;

 private:
  PlacedChunks(Journal journal, PartialFile file, const ChunkLedger& ledger, const WriteRun& run);
  void check_structure();
  void accept_chunks(ChunkLedger& ledger);
  void reserve_space() const;
  void begin_groups();
  [[nodiscard]] Dataset open_in_one_run() const;
  [[nodiscard]] std::int64_t offset_of(std::int64_t chunk) const noexcept {
    return base_offset_ + chunk * ledger_.chunk_bytes();
  }
  [[nodiscard]] PieceSize piece_size() const noexcept {
    return {.rows = ledger_.chunk_samples(), .row_bytes = ledger_.sample_bytes()};
  }
  /// Once it is known where the chunks lie.
  [[nodiscard]] FileStructure structure() const noexcept {
    return {file_, base_offset_, offset_of(ledger_.num_chunks()), file_bytes_};
  }

  const ChunkLedger& ledger_;
  const WriteRun& run_;
  // Destroyed from the last to the first: the partial file is removed before its journal, since a
  // journal without it is harmless.
  std::optional<Journal> journal_;
  PartialFile file_;
  std::optional<io::RangeWriter> writer_;
  std::optional<WriteVerifier> verifier_;  // with a journal only
  std::optional<GroupCommit> groups_;      // with a journal only
  std::int64_t base_offset_ = 0;           // of chunk 0 in the file
  std::int64_t file_bytes_ = 0;
  std::optional<ExpectedBytes> shortened_;  // the last chunk of a file that was shortened
};

}  // namespace chunkio::write
