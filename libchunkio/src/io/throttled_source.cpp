#include "io/throttled_source.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <chunkio/error.hpp>

#include "base/stopwatch.hpp"
#include "io/row_extents.hpp"
#include "io/stored_ranges.hpp"

namespace chunkio::io {
namespace {

// A group read that has not come for so long after its bytes was given up: the loader went
// elsewhere.
constexpr std::chrono::seconds kGivenUp{10};

}  // namespace

ThrottledSource::ThrottledSource(std::shared_ptr<const Dataset::Impl> file,
                                 std::shared_ptr<const h5::StoredArray> array,
                                 std::unique_ptr<ChunkSource> source, OnDisk place)
    : file_(std::move(file)),
      array_(std::move(array)),
      source_(std::move(source)),
      place_(std::move(place)) {}

ReadCost ThrottledSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                                std::stop_token stop) const {
  if (rows.empty()) return source_->place(group, rows, std::move(stop));
  const bool prefetched = group.prefetched && place_.read_ahead;
  ReadCost cost;
  const std::optional<Request> ahead =
      prefetched ? take_prefetched(
                       {group.first_row + rows.front().row, group.first_row + rows.back().row + 1})
                 : std::nullopt;
  if (ahead) wait(ahead->complete, stop, cost);
  const Request request = ahead ? *ahead : ask(group, rows, stop, cost);
  cost += source_->place(group, rows, stop);
  if (request.bytes == 0 && cost.bytes_read > 0) {
    // Of what libhdf5 alone can find nothing was known before.
    wait(place_.disk->submit(cost.bytes_read), stop, cost);
  } else if (cost.bytes_read > request.bytes && !place_.raw_bytes) {
    wait(place_.disk->submit_more(cost.bytes_read - request.bytes), stop, cost);
  }
  return cost;
}

void ThrottledSource::prefetch(const RowGroup& group, const RowRange& wanted) const noexcept {
  if (place_.read_ahead) charge_ahead(wanted);
  source_->prefetch(group, wanted);
}

void ThrottledSource::cancel_prefetch() const noexcept {
  source_->cancel_prefetch();
  const std::lock_guard lock(mutex_);
  prefetched_.clear();
}

void ThrottledSource::charge_ahead(const RowRange& wanted) const noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto entry = find_or_add(wanted);
    if (entry == prefetched_.end()) return;  // charged when it is read
    Prefetched& prefetched = entry->second;
    if (prefetched.request) {
      ++prefetched.to_charge;
    } else if (prefetched.to_charge < 0) {
      if (++prefetched.to_charge == 0) prefetched_.erase(entry);
    } else {
      prefetched.request = submit(wanted);
      prefetched.since = prefetched.request->complete;
    }
  } catch (const std::exception&) {
    // charged when it is read.
  }
}

std::optional<ThrottledSource::Request> ThrottledSource::take_prefetched(
    const RowRange& wanted) const {
  const std::lock_guard lock(mutex_);
  const auto entry = find_or_add(wanted);
  if (entry == prefetched_.end()) return std::nullopt;
  Prefetched& prefetched = entry->second;
  const std::optional<Request> request = std::exchange(prefetched.request, std::nullopt);
  if (!request) {
    --prefetched.to_charge;
    prefetched.since = place_.disk->now();
  }
  if (prefetched.to_charge == 0) prefetched_.erase(entry);
  return request;
}

ThrottledSource::Request ThrottledSource::submit(const RowRange& wanted) const {
  Request request{.complete = {}};
  for_each_stored_range(*array_, wanted, [&](std::int64_t offset, std::int64_t bytes) {
    request.complete = place_.disk->submit(bytes, place_.offset + offset);
    request.bytes += bytes;
  });
  return request;
}

ThrottledSource::Request ThrottledSource::ask(const RowGroup& group,
                                              std::span<const RowTarget> rows,
                                              const std::stop_token& stop, ReadCost& cost) const {
  Request request{.complete = {}};
  base::Stopwatch watch;
  bool arrived = true;
  const bool leaves_holes = has_row_extents(*array_);
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end =
        leaves_holes ? end_of_close_rows(rows, begin, array_->row_bytes) : rows.size();
    const RowRange read{group.first_row + rows[begin].row, group.first_row + rows[end - 1].row + 1};
    for_each_stored_range(*array_, read, [&](std::int64_t offset, std::int64_t bytes) {
      arrived = arrived && place_.disk->transfer(bytes, stop, place_.offset + offset);
      request.bytes += bytes;
    });
    begin = end;
  }
  cost.read_seconds += watch.lap();
  if (!arrived) throw stopped();
  return request;
}

ThrottledSource::Entries::iterator ThrottledSource::find_or_add(const RowRange& wanted) const {
  const Rows rows{wanted.begin, wanted.end};
  const auto found = prefetched_.find(rows);
  if (found != prefetched_.end() || !make_room()) return found;
  return prefetched_.emplace(rows, Prefetched{}).first;
}

bool ThrottledSource::make_room() const {
  if (prefetched_.size() < kMaxPrefetched) return true;
  const auto now = place_.disk->now();
  if (now < next_sweep_) return false;
  next_sweep_ = now + std::chrono::seconds(1);
  std::erase_if(prefetched_, [&](const auto& entry) {
    return now - entry.second.since > std::chrono::nanoseconds(kGivenUp);
  });
  return prefetched_.size() < kMaxPrefetched;
}

void ThrottledSource::wait(DiskLimiter::Clock::time_point time, const std::stop_token& stop,
                           ReadCost& cost) const {
  base::Stopwatch watch;
  const bool arrived = place_.disk->wait_until(time, stop);
  cost.read_seconds += watch.lap();
  if (!arrived) throw stopped();
}

Error ThrottledSource::stopped() const {
  return Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
}

std::int64_t ThrottledSource::memory_bytes(std::int64_t threads) const noexcept {
  constexpr std::int64_t kNodeBytes = 112;  // of a map, with what the heap adds
  return source_->memory_bytes(threads) + static_cast<std::int64_t>(kMaxPrefetched) * kNodeBytes;
}

}  // namespace chunkio::io
