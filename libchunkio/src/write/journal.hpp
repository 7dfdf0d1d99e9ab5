/// The journal of a file being written: what of PATH.partial has reached the disk.
///
/// libchunkio/doc/format.md has its bytes. A header says where the chunks lie and which run began
/// the file; records follow, each with a digest of itself. Whatever is cut or damaged ends the
/// journal before it, so a record that is read was written whole. The caller brings pixels to disk
/// before it appends their records, and calls sync() after it.
///
/// Untrusted: sizes are checked before memory is taken. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "write/partial_file.hpp"

namespace chunkio::write {

struct JournalHeader {
  std::int64_t first_chunk_offset = 0;  ///< Chunk i lies at this + i * chunk_bytes.
  std::int64_t chunk_bytes = 0;
  std::int64_t num_chunks = 0;
  std::int64_t file_bytes = 0;         ///< Length of the partial file.
  std::uint64_t structure_digest = 0;  ///< XXH3-64 of what lies outside of the chunks, in order.
  std::string run;                     ///< From describe_run().

  friend bool operator==(const JournalHeader&, const JournalHeader&) = default;
};

/// Of a ChunkRecord: more is taken for damage.
inline constexpr std::int64_t kMaxNoteBytes = std::int64_t{1} << 30;

/// A chunk that is on disk.
struct ChunkRecord {
  std::int64_t chunk = 0;
  std::int64_t num_rows = 0;
  std::uint64_t digest = 0;  ///< XXH3-64 of the XXH3-64s of its rows.
  std::string note;

  friend bool operator==(const ChunkRecord&, const ChunkRecord&) = default;
};

/// Bytes of the partial file that are saved in the journal.
struct SavedBytes {
  std::int64_t file_offset = 0;
  std::int64_t journal_offset = 0;
  std::int64_t num_bytes = 0;
};

class Journal {
 public:
  /// Creates the journal and brings its header to disk (its name: sync_folder()). It will be
  /// removed in the end. \throws Error as PartialFile::create(), and no_space.
  static Journal create(const std::string& path, const JournalHeader& header);
  /// Opens and reads what an earlier run left; absent if there is no journal, or none with a whole
  /// header, which says that nothing was recorded. It will be kept.
  /// \throws Error output_exists (in use), unsupported (of another version), io_failed.
  static std::optional<Journal> take_up(const std::string& path);

  [[nodiscard]] const JournalHeader& header() const noexcept { return header_; }
  /// Of what take_up() found, once: in the order of writing. The last record of a chunk counts.
  [[nodiscard]] std::vector<ChunkRecord> take_chunks() noexcept { return std::move(chunks_); }
  /// Forgets all records but the first of those, on disk as well. \pre nothing was appended.
  void keep_first(std::size_t num_chunks);
  /// Of what take_up() found: what the file was outside of its chunks before libhdf5 opened it for
  /// writing again; empty unless it was saved whole.
  [[nodiscard]] const std::vector<SavedBytes>& saved() const noexcept { return saved_; }

  [[nodiscard]] PartialFile& file() noexcept { return file_; }

  void append(std::span<const ChunkRecord> records);
  /// Saves bytes of the partial file; they count once append_saved_end() is on disk, too.
  void append_saved(std::int64_t file_offset, std::span<const std::byte> bytes);
  void append_saved_end();
  void sync() const { file_.sync_content(); }
  /// Cuts the journal behind the last chunk record that was found, on disk as well. To be called
  /// before anything is appended to a journal that was taken up.
  void forget_saved();

 private:
  explicit Journal(PartialFile file) : file_(std::move(file)) {}
  void write(std::span<const std::byte> records);
  [[nodiscard]] bool read_header();
  void read_records();

  PartialFile file_;
  JournalHeader header_;
  std::vector<ChunkRecord> chunks_;
  std::vector<std::int64_t> chunk_begins_;  ///< Of these, until forget_saved().
  std::vector<SavedBytes> saved_;
  std::uint64_t header_digest_ = 0;  ///< Goes into every record's digest.
  std::int64_t end_ = 0;             ///< Where the next record goes.
};

}  // namespace chunkio::write
