#include "plan/epoch_rows.hpp"

#include <algorithm>
#include <cstddef>

#include "base/access.hpp"
#include "plan/epoch_order_impl.hpp"
#include "plan/window_plan.hpp"

namespace chunkio::plan {

EpochRows::EpochRows(const EpochOrder& order)
    : num_steps_(order.num_steps()), lane_batch_(lane_batch(order)) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  const RowGroups& groups = order.groups();
  WindowPlan plan;
  for (std::int64_t lane = impl.first_lane(); lane < impl.end_lane(); ++lane) {
    auto& rows = lanes_.emplace_back(static_cast<std::size_t>(lane_delivered(order, lane)));
    for (std::int64_t window = 0; window < num_windows(order, lane); ++window) {
      plan_window(order, lane, window, plan);
      const auto place = [&](const GroupRead& read, const auto& row_of) {
        for (std::uint32_t i = read.first; i < read.first + read.count; ++i) {
          const PlannedRow& planned = plan.rows[i];
          rows[static_cast<std::size_t>(plan.first_index + planned.index)] = row_of(planned.row);
        }
      };
      for (const GroupRead& read : plan.reads) {
        const RowRange extent = groups.extent(read.group);
        if (groups.length(read.group) == extent.end - extent.begin) {
          // No row is left out, so none has to be looked up.
          place(read, [&](std::int64_t sample) { return extent.begin + sample; });
        } else {
          place(read, [&](std::int64_t sample) { return groups.row(read.group, sample); });
        }
      }
    }
  }
}

void EpochRows::append_batch(std::int64_t step, std::vector<std::int64_t>& rows) const {
  for (const std::vector<std::int64_t>& lane : lanes_) {
    const std::int64_t end = std::ssize(lane);
    const auto at = [&](std::int64_t index) { return lane.begin() + std::min(index, end); };
    rows.insert(rows.end(), at(step * lane_batch_), at((step + 1) * lane_batch_));
  }
}

}  // namespace chunkio::plan
