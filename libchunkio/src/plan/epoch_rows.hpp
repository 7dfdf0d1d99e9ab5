/// All rows of an epoch at once, for datasets that are small enough.
#pragma once

#include <cstdint>
#include <vector>

#include <chunkio/epoch_order.hpp>

namespace chunkio::plan {

/// The rows that one rank delivers in an epoch: 8 bytes each. Immutable.
class EpochRows {
 public:
  /// O(samples of the rank).
  explicit EpochRows(const EpochOrder& order);

  [[nodiscard]] std::int64_t num_steps() const noexcept { return num_steps_; }
  /// Appends the rows of step t in delivery order, as EpochOrder::batch() gives them.
  /// \pre 0 <= step < num_steps().
  void append_batch(std::int64_t step, std::vector<std::int64_t>& rows) const;

 private:
  std::int64_t num_steps_;
  std::int64_t lane_batch_;
  std::vector<std::vector<std::int64_t>> lanes_;  // of the rank: rows by delivery index
};

}  // namespace chunkio::plan
