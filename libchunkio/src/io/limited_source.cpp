#include "io/limited_source.hpp"

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

// A visit that has not come for so long after its bytes was given up: the loader went elsewhere.
constexpr std::chrono::seconds kGivenUp{10};

}  // namespace

LimitedSource::LimitedSource(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             std::unique_ptr<ChunkSource> source, OnDisk place)
    : file_(std::move(file)),
      array_(std::move(array)),
      source_(std::move(source)),
      place_(std::move(place)) {}

PlaceCost LimitedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                               std::stop_token stop) const {
  if (rows.empty()) return source_->place(group, rows, std::move(stop));
  const bool announced = group.announced && place_.read_ahead;
  PlaceCost cost;
  const std::optional<Request> ahead = announced
                                           ? take_announced({group.first_row + rows.front().row,
                                                             group.first_row + rows.back().row + 1})
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

void LimitedSource::will_need(const RowGroup& group, const RowRange& wanted) const noexcept {
  if (place_.read_ahead) announce(wanted);
  source_->will_need(group, wanted);
}

void LimitedSource::forget_announced() const noexcept {
  source_->forget_announced();
  const std::lock_guard lock(mutex_);
  announced_.clear();
}

void LimitedSource::announce(const RowRange& wanted) const noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto entry = find_or_add(wanted);
    if (entry == announced_.end()) return;  // charged when it is visited
    Announced& announced = entry->second;
    if (announced.request) {
      ++announced.to_charge;
    } else if (announced.to_charge < 0) {
      if (++announced.to_charge == 0) announced_.erase(entry);
    } else {
      announced.request = submit(wanted);
      announced.since = announced.request->complete;
    }
  } catch (const std::exception&) {
    // Charged when it is visited.
  }
}

std::optional<LimitedSource::Request> LimitedSource::take_announced(const RowRange& wanted) const {
  const std::lock_guard lock(mutex_);
  const auto entry = find_or_add(wanted);
  if (entry == announced_.end()) return std::nullopt;
  Announced& announced = entry->second;
  const std::optional<Request> request = std::exchange(announced.request, std::nullopt);
  if (!request) {
    --announced.to_charge;
    announced.since = place_.disk->now();
  }
  if (announced.to_charge == 0) announced_.erase(entry);
  return request;
}

LimitedSource::Request LimitedSource::submit(const RowRange& wanted) const {
  Request request{.complete = {}};
  for_each_stored_range(*array_, wanted, [&](std::int64_t offset, std::int64_t bytes) {
    request.complete = place_.disk->submit(bytes, place_.offset + offset);
    request.bytes += bytes;
  });
  return request;
}

LimitedSource::Request LimitedSource::ask(const RowGroup& group, std::span<const RowTarget> rows,
                                          const std::stop_token& stop, PlaceCost& cost) const {
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

LimitedSource::Entries::iterator LimitedSource::find_or_add(const RowRange& wanted) const {
  const Rows rows{wanted.begin, wanted.end};
  const auto found = announced_.find(rows);
  if (found != announced_.end() || !make_room()) return found;
  return announced_.emplace(rows, Announced{}).first;
}

bool LimitedSource::make_room() const {
  if (announced_.size() < kMaxAnnounced) return true;
  const auto now = place_.disk->now();
  if (now < next_sweep_) return false;
  next_sweep_ = now + std::chrono::seconds(1);
  std::erase_if(announced_, [&](const auto& entry) {
    return now - entry.second.since > std::chrono::nanoseconds(kGivenUp);
  });
  return announced_.size() < kMaxAnnounced;
}

void LimitedSource::wait(DiskLimiter::Clock::time_point time, const std::stop_token& stop,
                         PlaceCost& cost) const {
  base::Stopwatch watch;
  const bool arrived = place_.disk->wait_until(time, stop);
  cost.read_seconds += watch.lap();
  if (!arrived) throw stopped();
}

Error LimitedSource::stopped() const {
  return Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
}

std::int64_t LimitedSource::memory_bytes(std::int64_t threads) const noexcept {
  constexpr std::int64_t kNodeBytes = 112;  // of a map, with what the heap adds
  return source_->memory_bytes(threads) + static_cast<std::int64_t>(kMaxAnnounced) * kNodeBytes;
}

}  // namespace chunkio::io
