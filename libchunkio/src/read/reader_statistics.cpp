#include "read/reader_statistics.hpp"

#include <algorithm>

namespace chunkio::read {
namespace {

double seconds_between(ReaderStatistics::Time start, ReaderStatistics::Time end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

void ReaderStatistics::restart(Time now) {
  settle_waits(now);
  in_epoch_ = false;
  ahead_.clear();
  consumer_epoch_ = -1;
}

void ReaderStatistics::enter(std::int64_t epoch, bool goes_on, Time now) {
  settle_waits(now);
  if (epoch != consumer_epoch_) {
    Visited& visited = visited_[epoch];
    visited = {.stats = ahead_[epoch], .number = num_visits_++};
    ahead_.erase(epoch);
    consumer_epoch_ = epoch;
    if (visited_.size() > kEpochsRemembered) {
      visited_.erase(std::min_element(
          visited_.begin(), visited_.end(),
          [](const auto& a, const auto& b) { return a.second.number < b.second.number; }));
    }
  }
  in_epoch_ = true;
  if (!goes_on) epoch_started_ = now;
  if (!first_started_) first_started_ = now;
}

void ReaderStatistics::leave(Time now) {
  settle_waits(now);
  in_epoch_ = false;
}

void ReaderStatistics::add_plan(std::int64_t epoch, double seconds) {
  of(epoch).plan_seconds += seconds;
  total_.plan_seconds += seconds;
}

void ReaderStatistics::add_group_read(std::int64_t epoch, const ReadCost& cost) {
  for (LoaderStats* stats : {&total_, &of(epoch)}) {
    stats->bytes_read += cost.bytes_read;
    stats->chunk_loads += cost.bytes_read > 0 ? 1 : 0;
    stats->read_seconds += cost.read_seconds;
    stats->decode_seconds += cost.decode_seconds;
    stats->copy_seconds += cost.copy_seconds;
  }
}

void ReaderStatistics::add_batch(const Delivered& batch, Time asked, Time complete) noexcept {
  for (LoaderStats* stats : {&total_, &visited_.find(consumer_epoch_)->second.stats}) {
    stats->batches += 1;
    if (batch.copied) stats->copied_batches += 1;
    stats->images += batch.images;
    stats->skipped_images += batch.skipped;
    stats->bytes_delivered += batch.bytes;
    stats->stall_seconds += seconds_between(asked, complete);
    stats->seconds = seconds_between(stats == &total_ ? *first_started_ : epoch_started_, complete);
  }
}

void ReaderStatistics::begin_wait(WaitFor what, Time now) {
  settle_waits(now);
  ++num_waiting_[static_cast<std::size_t>(what)];
}

void ReaderStatistics::end_wait(WaitFor what, Time now) {
  settle_waits(now);
  --num_waiting_[static_cast<std::size_t>(what)];
}

void ReaderStatistics::settle_waits(Time now) noexcept {
  const double seconds = seconds_between(settled_, now);
  settled_ = now;
  const auto count = [&](LoaderStats& stats) {
    stats.input_wait_seconds += static_cast<double>(num_waiting_[0]) * seconds;
    stats.output_wait_seconds += static_cast<double>(num_waiting_[1]) * seconds;
  };
  count(total_);
  if (in_epoch_) count(visited_.find(consumer_epoch_)->second.stats);
}

LoaderStats ReaderStatistics::epoch(std::int64_t epoch) const {
  const auto visited = visited_.find(epoch);
  if (visited != visited_.end()) return visited->second.stats;
  const auto ahead = ahead_.find(epoch);
  return ahead == ahead_.end() ? LoaderStats{} : ahead->second;
}

LoaderStats& ReaderStatistics::of(std::int64_t epoch) {
  return epoch == consumer_epoch_ ? visited_.find(epoch)->second.stats : ahead_[epoch];
}

}  // namespace chunkio::read

namespace chunkio {

LoaderStats LoaderStats::since(const LoaderStats& earlier) const {
  LoaderStats later = *this;
  later.batches -= earlier.batches;
  later.copied_batches -= earlier.copied_batches;
  later.images -= earlier.images;
  later.bytes_delivered -= earlier.bytes_delivered;
  later.bytes_read -= earlier.bytes_read;
  later.chunk_loads -= earlier.chunk_loads;
  later.skipped_images -= earlier.skipped_images;
  later.seconds -= earlier.seconds;
  later.stall_seconds -= earlier.stall_seconds;
  later.plan_seconds -= earlier.plan_seconds;
  later.read_seconds -= earlier.read_seconds;
  later.decode_seconds -= earlier.decode_seconds;
  later.copy_seconds -= earlier.copy_seconds;
  later.input_wait_seconds -= earlier.input_wait_seconds;
  later.output_wait_seconds -= earlier.output_wait_seconds;
  return later;
}

}  // namespace chunkio
