/// Rows of a remote file that are read again if they come wrong: do not match their digest, or
/// cannot be decoded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/chunk_source.hpp"
#include "io/ask_again.hpp"

namespace chunkio::sources {

class RereadingSource final : public ChunkSource {
 public:
  /// \param bytes  of the file that `source` reads. \pre as_remote_file(*bytes) is one.
  RereadingSource(std::unique_ptr<ChunkSource> source, std::shared_ptr<const ByteSource> bytes)
      : source_(std::move(source)), bytes_(std::move(bytes)) {}

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override {
    RowGroup asked = group;
    std::vector<RowTarget> wrong;
    ReadCost cost;
    const auto look = [&] {
      try {
        return cost += source_->place(asked, rows, stop);
      } catch (Error& error) {
        wrong = wrong_rows(error, group, rows, cost);
        rows = wrong;
        asked.prefetched = nullptr;
        if (auto* const damaged = dynamic_cast<DamagedRows*>(&error)) damaged->cost = cost;
        throw;
      }
    };
    return io::ask_again(*bytes_, look, [](ErrorCode code) {
      return code == ErrorCode::digest_mismatch || code == ErrorCode::corrupt_data ||
             code == ErrorCode::hdf5_failed;
    });
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override {
    return source_->prefetch(group, wanted);
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override {
    return source_->memory_bytes(threads);
  }

 private:
  /// Those of `rows` that are not in their places after `error`, the cost of which is added.
  static std::vector<RowTarget> wrong_rows(const Error& error, const RowGroup& group,
                                           std::span<const RowTarget> rows, ReadCost& cost) {
    std::vector<RowTarget> wrong;
    if (const auto* const damaged = dynamic_cast<const DamagedRows*>(&error)) {
      cost += damaged->cost;
      for (const RowTarget& row : rows) {
        if (contains(damaged->rows(), group.first_row + row.row)) wrong.push_back(row);
      }
    }
    // Not rows by themselves, or only such as nobody wants.
    if (wrong.empty()) wrong.assign(rows.begin(), rows.end());
    return wrong;
  }

  std::unique_ptr<ChunkSource> source_;
  std::shared_ptr<const ByteSource> bytes_;
};

}  // namespace chunkio::sources
