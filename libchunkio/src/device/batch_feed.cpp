#include "device/batch_feed.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "base/trace.hpp"

namespace chunkio::device {

BatchFeed::BatchFeed(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches)
    : gpu_(std::move(gpu)), loader_(std::move(loader)), batches_(batches) {
  const auto rows = static_cast<std::size_t>(loader_.options().batch_size * batches_);
  for (std::int64_t i = 0; i < kBigBatches; ++i) {
    BigBatch& big_batch = big_batches_.emplace_back();
    big_batch.uploaded = GpuEvent(gpu_);
    big_batch.consumed = GpuEvent(gpu_);
    big_batch.batch_rows.reserve(static_cast<std::size_t>(batches_));
    big_batch.sample_ids.reserve(rows);
    big_batch.device_rows.reserve(rows);
  }
}

void BatchFeed::start(std::int64_t epoch) {
  const bool restored = std::exchange(restored_, false);
  {
    const std::lock_guard lock(mutex_);
    const bool goes_on = running_ || !items_.empty() || error_ != nullptr;
    if (goes_on && ended_ && !restored && epoch == epoch_ + 1) {
      epoch_ = epoch;
      ended_ = false;
      return;
    }
  }
  stop();
  epoch_ = epoch;
  running_ = true;
  try {
    thread_ = std::jthread([this, epoch](std::stop_token stop) { run(std::move(stop), epoch); });
  } catch (const std::system_error& error) {
    running_ = false;
    throw Error(ErrorCode::out_of_resources,
                std::string("cannot start a thread that feeds the device: ") + error.what());
  }
}

void BatchFeed::restore(std::string_view state) {
  stop();
  go_to(state);
  restored_ = true;
}

void BatchFeed::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  ended_ = false;
  {
    const std::lock_guard lock(mutex_);
    idle_.clear();
    for (BigBatch& big_batch : big_batches_) idle_.push_back(&big_batch);
    items_.clear();
    error_ = nullptr;
    running_ = false;
  }
  settle();
}

std::optional<BigBatch*> BatchFeed::next(Seconds limit) {
  const base::TraceRange range(base::Stage::wait_for_upload);
  const auto asked = Clock::now();
  std::unique_lock lock(mutex_);
  while (items_.empty() && error_ == nullptr && running_) {
    // For storage it may wait as long as storage takes.
    if (!waits_for_device_since_) {
      item_available_.wait(lock);
      continue;
    }
    const auto end = std::max(asked, *waits_for_device_since_) + limit;
    if (Clock::now() >= end) return std::nullopt;
    item_available_.wait_until(lock, end);
  }
  // What was read before the error is delivered first.
  if (items_.empty()) {
    if (error_ != nullptr) std::rethrow_exception(error_);
    throw Error(ErrorCode::invalid_argument, "no epoch was started; call start_epoch() first");
  }
  const Item item = items_.front();
  items_.pop_front();
  ended_ = item.big_batch == nullptr;
  return item.big_batch;
}

void BatchFeed::release(BigBatch* big_batch) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(big_batch);
  }
  idle_available_.notify_one();
}

BatchFeed::Uploads BatchFeed::uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_;
}

void BatchFeed::run(std::stop_token stop, std::int64_t epoch) {
  base::name_this_thread("chunkio feed");
  try {
    while (run_epoch(stop, epoch)) ++epoch;
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      running_ = false;
    }
    item_available_.notify_one();
  }
}

/// Whether there is a next epoch to be prepared.
bool BatchFeed::run_epoch(const std::stop_token& stop, std::int64_t epoch) {
  begin_epoch(epoch);
  bool any = false;
  for (;; any = true) {
    BigBatch* const big_batch = take_idle(stop);
    if (big_batch == nullptr) return false;
    big_batch->epoch = epoch;
    big_batch->batch_rows.clear();
    big_batch->sample_ids.clear();
    big_batch->device_rows.clear();
    const bool filled = fill(*big_batch, stop);
    if (stop.stop_requested()) return false;
    if (!filled) {
      release(big_batch);
      break;
    }
    push({epoch, big_batch}, true);
  }
  const std::optional<std::int64_t> num_epochs = loader_.options().num_epochs;
  // Epochs without batches are not prepared without end.
  const bool more = any && !(num_epochs && epoch + 1 >= *num_epochs);
  push({epoch, nullptr}, more);
  return more;
}

BigBatch* BatchFeed::take_idle(const std::stop_token& stop) {
  const base::TraceRange range(base::Stage::wait_for_device_buffer);
  std::unique_lock lock(mutex_);
  idle_available_.wait(lock, stop, [&] { return !idle_.empty(); });
  if (stop.stop_requested()) return nullptr;
  BigBatch* const big_batch = idle_.back();
  idle_.pop_back();
  return big_batch;
}

BatchFeed::DeviceWait::DeviceWait(BatchFeed& feed) : feed_(feed) {
  {
    const std::lock_guard lock(feed_.mutex_);
    feed_.waits_for_device_since_ = Clock::now();
  }
  // The consumer sees to it that this does not last for ever.
  feed_.item_available_.notify_one();
}

BatchFeed::DeviceWait::~DeviceWait() {
  const std::lock_guard lock(feed_.mutex_);
  feed_.waits_for_device_since_.reset();
}

void BatchFeed::count_upload(const Uploads& more) {
  const std::lock_guard lock(mutex_);
  uploads_.bytes += more.bytes;
  uploads_.seconds += more.seconds;
}

void BatchFeed::push(Item item, bool more) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
    running_ = more;
  }
  item_available_.notify_one();
}

}  // namespace chunkio::device
