#include "harness/copies.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/streaming_copy.hpp"

namespace bench {

CopyPlan plan_copies(const chunkio::Loader& loader, std::span<const std::int64_t> order) {
  const chunkio::RowGroups& groups = loader.row_groups();
  CopyPlan plan;
  std::map<std::int64_t, std::size_t> visit_of_group;
  std::int64_t rows_missing = 0;
  std::int64_t groups_left = groups.num_groups();
  for (std::size_t position = 0; position < order.size(); ++position) {
    const std::int64_t group = order[position] / groups.group_samples();
    const auto [entry, is_new] = visit_of_group.try_emplace(group, plan.visits.size());
    if (is_new) {
      plan.visits.push_back({plan.visits_of_window.size(), {}});
      rows_missing += groups.length(group);
      --groups_left;
    }
    plan.visits[entry->second].moves.push_back(
        {order[position], static_cast<std::int64_t>(position)});
    --rows_missing;
    const auto met = static_cast<std::int64_t>(visit_of_group.size());
    if (rows_missing == 0 && (met == loader.window_groups() || groups_left == 0)) {
      plan.visits_of_window.push_back(met);
      visit_of_group.clear();
    }
  }
  for (Visit& visit : plan.visits) {
    std::sort(visit.moves.begin(), visit.moves.end(),
              [](const Move& a, const Move& b) { return a.row < b.row; });
  }
  return plan;
}

void plain_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept {
  std::memcpy(target, source, size);
}

void copy_rows(const CopyPlan& plan, std::span<const std::byte> pixels, std::span<std::byte> ring,
               std::size_t sample_bytes, std::int64_t threads, Copy copy) {
  std::vector<std::atomic<std::int64_t>> visits_left(plan.visits_of_window.size());
  for (std::size_t w = 0; w < visits_left.size(); ++w) visits_left[w] = plan.visits_of_window[w];
  const std::size_t ring_rows = ring.size() / sample_bytes;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t v = next++; v < plan.visits.size(); v = next++) {
      const Visit& visit = plan.visits[v];
      if (visit.window >= 2) {
        while (visits_left[visit.window - 2].load(std::memory_order_acquire) != 0) {
          std::this_thread::yield();
        }
      }
      for (const Move& move : visit.moves) {
        const auto slot = static_cast<std::size_t>(move.position) % ring_rows;
        copy(ring.data() + slot * sample_bytes,
             pixels.data() + static_cast<std::size_t>(move.row) * sample_bytes, sample_bytes);
      }
      chunkio::base::store_fence();
      visits_left[visit.window].fetch_sub(1, std::memory_order_release);
    }
  };
  std::vector<std::jthread> workers;
  for (std::int64_t t = 1; t < threads; ++t) workers.emplace_back(work);
  work();
}

void check_ring(const char* what, std::span<const std::int64_t> order,
                std::span<const std::byte> pixels, std::span<std::byte> ring,
                std::size_t sample_bytes) {
  const std::size_t ring_rows = ring.size() / sample_bytes;
  const std::size_t first = order.size() > ring_rows ? order.size() - ring_rows : 0;
  for (std::size_t i = first; i < order.size(); ++i) {
    if (std::memcmp(ring.data() + i % ring_rows * sample_bytes,
                    pixels.data() + static_cast<std::size_t>(order[i]) * sample_bytes,
                    sample_bytes) != 0) {
      throw std::runtime_error(std::string(what) + " left a wrong image at position " +
                               std::to_string(i));
    }
  }
  std::fill(ring.begin(), ring.end(), std::byte{0});
}

}  // namespace bench
