/// The rows of several files as those of one array: hands each row group to the source of its file.
///
/// A row group never crosses the end of a file (RowGroups), so nothing is put together here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "base/chunk_source.hpp"

namespace chunkio::sources {

class ShardedSource final : public ChunkSource {
 public:
  /// \param sources    of each file, numbering its own rows from 0. They share the scratch memory
  ///                   of their callers (SourceRequest::scratch).
  /// \param file_rows  rows of each file, >= 1; as many as sources.
  ShardedSource(std::vector<std::unique_ptr<ChunkSource>> sources,
                std::span<const std::int64_t> file_rows);

  /// Messages name the file, and rows as they are numbered there.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  [[nodiscard]] std::size_t file_of(std::int64_t row) const noexcept;

  std::vector<std::unique_ptr<ChunkSource>> sources_;
  std::vector<std::int64_t> first_rows_;  // of each file
};

}  // namespace chunkio::sources
