#include "write/chunk_ledger.hpp"

#include <utility>

#include "base/digest.hpp"

namespace chunkio::write {

ChunkLedger::ChunkLedger(std::int64_t num_samples, std::int64_t chunk_samples,
                         std::int64_t sample_bytes)
    : num_samples_(num_samples),
      chunk_samples_(chunk_samples),
      sample_bytes_(sample_bytes),
      states_(static_cast<std::size_t>(num_chunks())),
      rows_written_(static_cast<std::size_t>(num_chunks())),
      row_digests_(static_cast<std::size_t>(num_samples)),
      empty_row_digest_(
          base::digest(std::vector<std::byte>(static_cast<std::size_t>(sample_bytes)))) {}

bool ChunkLedger::claim(std::int64_t chunk) noexcept {
  std::uint8_t missing = kMissing;
  return states_[static_cast<std::size_t>(chunk)].compare_exchange_strong(missing, kWriting);
}

void ChunkLedger::release(std::int64_t chunk) noexcept {
  states_[static_cast<std::size_t>(chunk)] = kMissing;
}

void ChunkLedger::set_written(std::int64_t chunk, std::int64_t num_rows) noexcept {
  rows_written_[static_cast<std::size_t>(chunk)] = num_rows;
  states_[static_cast<std::size_t>(chunk)] = kWritten;
}

void ChunkLedger::set_resumed(ResumedChunk chunk) {
  set_written(chunk.chunk, chunk.num_rows);
  resumed_.push_back(std::move(chunk));
}

void ChunkLedger::check_written(std::int64_t num_rows, const std::string& target) const {
  for (std::int64_t chunk = 0; chunk < num_chunks(); ++chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    const std::string shown = target + ": chunk " + std::to_string(chunk);
    const bool written = states_[index] == kWritten;
    const std::int64_t needed =
        std::clamp<std::int64_t>(num_rows - chunk * chunk_samples_, 0, chunk_samples_);
    if (needed > 0 && !written) {
      throw Error(ErrorCode::invalid_argument, shown + " was not written");
    }
    if (written && rows_written_[index] != needed) {
      throw Error(ErrorCode::invalid_argument,
                  shown + " was given " + std::to_string(rows_written_[index]) + " rows, and " +
                      std::to_string(needed) + " of the file's " + std::to_string(num_rows) +
                      " belong there");
    }
  }
}

void ChunkLedger::digest_rows(std::int64_t chunk, std::span<const std::byte> rows) {
  const auto row_bytes = static_cast<std::size_t>(sample_bytes_);
  auto* digest = &row_digests_[static_cast<std::size_t>(chunk * chunk_samples_)];
  for (std::int64_t row = 0; row < rows_of(chunk); ++row, ++digest) {
    const std::size_t at = static_cast<std::size_t>(row) * row_bytes;
    *digest = at < rows.size() ? base::digest(rows.subspan(at, row_bytes)) : empty_row_digest_;
  }
}

void ChunkLedger::set_row_digests(std::int64_t chunk,
                                  std::span<const std::uint64_t> digests) noexcept {
  std::copy_n(digests.begin(), rows_of(chunk), row_digests_.begin() + chunk * chunk_samples_);
}

std::uint64_t ChunkLedger::chunk_digest(std::int64_t chunk) const {
  base::RunningDigest digest;
  digest.add(std::as_bytes(std::span(row_digests_)
                               .subspan(static_cast<std::size_t>(chunk * chunk_samples_),
                                        static_cast<std::size_t>(rows_of(chunk)))));
  for (std::int64_t row = rows_of(chunk); row < chunk_samples_; ++row) {
    digest.add(std::as_bytes(std::span(&empty_row_digest_, 1)));
  }
  return digest.value();
}

}  // namespace chunkio::write
