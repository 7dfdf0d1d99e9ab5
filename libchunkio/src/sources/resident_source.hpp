/// Keeps what was read, so that each row comes from the file once.
///
/// Wraps another source. The first read of a row group brings all its samples to memory, and every
/// read copies rows from there. Samples that did not match their digests then are not read again:
/// every read says so. For datasets that fit in memory (Resident::host).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/chunk_source.hpp"
#include "base/host_memory.hpp"

namespace chunkio::sources {

class ResidentSource final : public ChunkSource {
 public:
  /// Reserves the memory; the kernel provides it as rows arrive.
  /// \throws Error out_of_resources.
  ResidentSource(RowGroups groups, std::int64_t row_bytes, std::unique_ptr<ChunkSource> source);

  /// Bytes that rows and tables take, which do not depend on the threads; absent beyond 2^63.
  [[nodiscard]] static std::optional<std::int64_t> kept_bytes(const RowGroups& groups,
                                                              std::int64_t row_bytes) noexcept;

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  enum class State : std::uint8_t { absent, loading, present };

  /// Number of the group of a row, among all groups of the files.
  [[nodiscard]] std::size_t number_of(std::int64_t row) const noexcept;
  /// Where the samples of a group lie, one after the other.
  [[nodiscard]] std::byte* memory_of(std::size_t number) const noexcept;
  /// \returns which of its samples are damaged, or nothing.
  [[nodiscard]] std::optional<DamagedRows> make_present(const RowGroup& group, std::size_t number,
                                                        const std::stop_token& stop,
                                                        ReadCost& cost) const;

  RowGroups groups_;
  std::size_t row_bytes_;
  std::unique_ptr<ChunkSource> source_;
  base::HostBuffer rows_;
  /// Of each group of the files: its number in groups_ (-1: no samples), and its first sample's
  /// place.
  std::vector<std::int64_t> group_of_;
  std::vector<std::int64_t> first_sample_;

  mutable std::mutex mutex_;  // innermost; guards states_ and damaged_
  mutable std::condition_variable changed_;
  mutable std::vector<State> states_;
  mutable std::map<std::size_t, DamagedRows> damaged_;  ///< By number, of groups that are present.
};

}  // namespace chunkio::sources
