/// How the chunks of a file being written come to their places, and the file to its end.
///
/// PlacedChunks knows all places beforehand; FilteredChunks lets libhdf5 find them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "h5/skeleton_writer.hpp"
#include "write/partial_file.hpp"
#include "write/write_verifier.hpp"

namespace chunkio::write {

/// Owns the partial file. check() to committed() are thread-safe, the rest is not.
class ChunkStore {
 public:
  ChunkStore() = default;
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;
  virtual ~ChunkStore() = default;

  [[nodiscard]] virtual PartialFile& file() noexcept = 0;

  /// Does not wait for what others write. \throws the first failure that is final, again.
  virtual void check() = 0;
  /// While this lives nothing is read back.
  [[nodiscard]] virtual std::optional<WriteVerifier::Writing> writing() { return std::nullopt; }
  /// Writes a chunk, once: `rows`, and zeros up to its size.
  /// \param digest  of the whole chunk. \param note  for the journal, if there is one.
  /// \throws Error hdf5_failed, io_failed, no_space, out_of_resources.
  virtual void write(std::int64_t chunk, std::span<const std::byte> rows, std::uint64_t digest,
                     std::string_view note) = 0;
  /// Brings what was written to disk and into the journal, if there is one.
  /// \throws Error io_failed, no_space.
  virtual void commit() {}
  /// Whether chunks are in a journal.
  [[nodiscard]] virtual bool committed() const noexcept { return false; }

  /// Reads all rows that an earlier run wrote, and hands them out in pieces of whole rows.
  virtual void read_resumed(const std::function<void(std::span<const std::byte>)>& /*take*/) const {
  }

  // The end of the file, in this order.

  /// All chunks are written: brings them to disk, if that comes before the structure.
  virtual void finish_chunks() {}
  /// Adds what is known at the end, and brings all to disk. \param fields  as h5::complete_file().
  virtual void complete(std::span<const FieldData> fields, h5::Completion completion) = 0;
  /// Opens what was written. \throws Error digest_mismatch if chunks lie elsewhere.
  [[nodiscard]] virtual Dataset open() const = 0;
  /// Reads chunks back that were not read back yet. \throws Error cancelled; one cannot be read.
  [[nodiscard]] virtual std::optional<std::int64_t> first_damaged(const Dataset& dataset,
                                                                  std::stop_token stop) = 0;
  /// The file has its final name.
  virtual void published() noexcept {}
};

}  // namespace chunkio::write
