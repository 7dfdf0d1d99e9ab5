/// Which chunks of a file being written are written, and the digests of their rows.
///
/// Thread-safe for distinct chunks: the thread that claims a chunk alone sets what is kept of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "base/checked_math.hpp"

namespace chunkio::write {

class ChunkLedger {
 public:
  ChunkLedger(std::int64_t num_samples, std::int64_t chunk_samples, std::int64_t sample_bytes);

  [[nodiscard]] std::int64_t num_samples() const noexcept { return num_samples_; }
  [[nodiscard]] std::int64_t chunk_samples() const noexcept { return chunk_samples_; }
  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return sample_bytes_; }
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return chunk_samples_ * sample_bytes_; }
  [[nodiscard]] std::int64_t num_chunks() const noexcept { return chunks_of(num_samples_); }
  /// Chunks that hold `num_rows` rows.
  [[nodiscard]] std::int64_t chunks_of(std::int64_t num_rows) const noexcept {
    return base::ceil_divide(num_rows, chunk_samples_);
  }
  /// Rows that a chunk has room for.
  [[nodiscard]] std::int64_t rows_of(std::int64_t chunk) const noexcept {
    return std::min(chunk_samples_, num_samples_ - chunk * chunk_samples_);
  }

  /// Takes a chunk to be written. \returns false if it is written, or somebody is at it.
  [[nodiscard]] bool claim(std::int64_t chunk) noexcept;
  /// Gives a claimed chunk back, not written.
  void release(std::int64_t chunk) noexcept;
  void set_written(std::int64_t chunk, std::int64_t num_rows) noexcept;
  /// Notes a chunk that an earlier run wrote.
  void set_resumed(ResumedChunk chunk);
  /// Ascending. \pre set_resumed() was called so.
  [[nodiscard]] const std::vector<ResumedChunk>& resumed() const noexcept { return resumed_; }
  /// \throws Error invalid_argument unless exactly the first `num_rows` rows of the file are
  ///         written. \param target  for messages.
  void check_written(std::int64_t num_rows, const std::string& target) const;

  /// Digests the rows of a chunk; those that it has room for beyond them are zeros.
  void digest_rows(std::int64_t chunk, std::span<const std::byte> rows);
  /// Takes over digests of rows; those beyond the end of the dataset are ignored.
  void set_row_digests(std::int64_t chunk, std::span<const std::uint64_t> digests) noexcept;
  /// The digest of those of all rows that the chunk has room for, as they are stored.
  [[nodiscard]] std::uint64_t chunk_digest(std::int64_t chunk) const;
  /// Of the pixels of the first `num_rows` rows of the file; of all that is covered once the
  /// structure is complete.
  [[nodiscard]] std::span<std::uint64_t> row_digests(std::int64_t num_rows) noexcept {
    return std::span(row_digests_).first(static_cast<std::size_t>(num_rows));
  }

 private:
  enum State : std::uint8_t { kMissing = 0, kWriting = 1, kWritten = 2 };

  std::int64_t num_samples_;
  std::int64_t chunk_samples_;
  std::int64_t sample_bytes_;
  std::vector<std::atomic<std::uint8_t>> states_;  // a State for each chunk
  std::vector<std::int64_t> rows_written_;
  std::vector<std::uint64_t> row_digests_;
  std::uint64_t empty_row_digest_;  // of zeros
  std::vector<ResumedChunk> resumed_;
};

}  // namespace chunkio::write
