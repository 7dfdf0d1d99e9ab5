/// Rows of a remote file that are read again if they come wrong.
///
/// TCP's check sums let some damage pass, and proxies add their own. What does not match its
/// digest, or cannot be decoded, is asked for again; only what is wrong each time is damaged in the
/// file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/chunk_source.hpp"
#include "io/remote_file.hpp"

namespace chunkio::sources {

class RereadingSource final : public ChunkSource {
 public:
  /// Where one request in twenty brings wrong bytes, one row group in 160,000 stays wrong.
  static constexpr int kTimes = 3;

  /// \param bytes  of the file that `source` reads. \pre as_remote_file(*bytes) is one.
  RereadingSource(std::unique_ptr<ChunkSource> source, std::shared_ptr<const ByteSource> bytes)
      : source_(std::move(source)), bytes_(std::move(bytes)) {}

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override {
    std::vector<RowTarget> wrong;
    ReadCost cost;
    try {
      return source_->place(group, rows, stop);
    } catch (const Error& error) {
      if (!may_have_come_wrong(error.code())) throw;
      wrong = wrong_rows(error, group, rows, cost);
    }
    const io::Distrust distrust(*io::as_remote_file(*bytes_));
    RowGroup again = group;
    again.prefetched = nullptr;
    for (int times = 1;; ++times) {
      try {
        cost += source_->place(again, wrong, stop);
        return cost;
      } catch (Error& error) {
        if (times < kTimes && may_have_come_wrong(error.code())) {
          wrong = wrong_rows(error, group, wrong, cost);
          continue;
        }
        if (auto* const damaged = dynamic_cast<DamagedRows*>(&error)) damaged->cost += cost;
        throw;
      }
    }
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override {
    return source_->prefetch(group, wanted);
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override {
    return source_->memory_bytes(threads);
  }

 private:
  static bool may_have_come_wrong(ErrorCode code) noexcept {
    return code == ErrorCode::digest_mismatch || code == ErrorCode::corrupt_data ||
           code == ErrorCode::hdf5_failed;
  }
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
