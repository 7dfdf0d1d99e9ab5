/// What lies outside of the chunks of a file being written: HDF5's structure, and fields.
///
/// libhdf5 changes it once more at the end, and a kill inside leaves a file that it may not open.
/// So it is saved in the journal before, and a run that is resumed puts it back.
#pragma once

#include <cstdint>

#include "write/journal.hpp"
#include "write/partial_file.hpp"

namespace chunkio::write {

/// Reads and writes in pieces of 4 MiB. Blocks on I/O.
class FileStructure {
 public:
  /// The bytes [0, chunks_begin) and [chunks_end, file_bytes) of `file`, which must outlive this.
  FileStructure(const PartialFile& file, std::int64_t chunks_begin, std::int64_t chunks_end,
                std::int64_t file_bytes) noexcept
      : file_(file),
        chunks_begin_(chunks_begin),
        chunks_end_(chunks_end),
        file_bytes_(file_bytes) {}

  /// XXH3-64 of all of it, in order. \throws Error io_failed, corrupt_data (the file ends early).
  [[nodiscard]] std::uint64_t digest() const;

  /// Bytes of a journal that it takes when it is saved, at most.
  [[nodiscard]] std::int64_t journal_bytes() const noexcept;
  /// Appends it to the journal and brings that to disk.
  /// \throws Error io_failed, no_space, corrupt_data.
  void save(Journal& journal) const;
  /// Puts back what an earlier run saved, and the length of the file, and brings both to disk.
  /// \throws Error io_failed, no_space, corrupt_data.
  void restore(Journal& journal) const;

 private:
  template <class Call>
  void for_each_piece(Call call) const;

  const PartialFile& file_;
  std::int64_t chunks_begin_;
  std::int64_t chunks_end_;
  std::int64_t file_bytes_;
};

}  // namespace chunkio::write
