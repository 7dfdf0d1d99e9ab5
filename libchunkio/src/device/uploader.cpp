#include "device/uploader.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

namespace chunkio::device {
namespace {

/// One is filled while the other is used.
constexpr std::size_t kBigBatches = 2;
/// The kernel reads whole 16-byte words, which may reach beyond the last picture.
constexpr std::size_t kSlack = 16;

}  // namespace

Uploader::Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches,
                   const LabelPlan& labels)
    : gpu_(std::move(gpu)),
      loader_(std::move(loader)),
      batches_(batches),
      labels_(labels),
      stream_(gpu_) {
  const std::int64_t rows = loader_.options().batch_size * batches_;
  const auto picture_bytes =
      static_cast<std::size_t>(rows * loader_.dataset().info().sample_bytes()) + kSlack;
  const auto label_bytes = static_cast<std::size_t>(rows * labels_.input_bytes());
  for (std::size_t i = 0; i < kBigBatches; ++i) {
    BigBatch& big_batch = big_batches_.emplace_back();
    big_batch.pictures = DeviceBuffer(gpu_, picture_bytes);
    if (label_bytes > 0) big_batch.labels = DeviceBuffer(gpu_, label_bytes);
    big_batch.uploaded = GpuEvent(gpu_);
    big_batch.consumed = GpuEvent(gpu_);
    big_batch.batch_rows.reserve(static_cast<std::size_t>(batches_));
    big_batch.sample_ids.reserve(static_cast<std::size_t>(rows));
  }
  device_bytes_ = static_cast<std::int64_t>(kBigBatches * (picture_bytes + label_bytes));
  for (std::int64_t i = 0; i < loader_.options().max_held; ++i) copy_events_.emplace_back(gpu_);
}

Uploader::~Uploader() {
  try {
    stop();
  } catch (const Error&) {
    // A device that is lost has no copies under way.
  }
}

void Uploader::start(std::int64_t epoch) {
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
  ended_ = false;
  running_ = true;
  try {
    thread_ = std::jthread([this, epoch](std::stop_token stop) { run(std::move(stop), epoch); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::out_of_resources,
                std::string("cannot start a thread that feeds the device: ") + error.what());
  }
}

void Uploader::restore(std::string_view state) {
  stop();
  loader_.restore(state);
  restored_ = true;
}

void Uploader::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  gpu_->synchronize(stream_.get());
  copying_.clear();
  const std::lock_guard lock(mutex_);
  idle_.clear();
  for (BigBatch& big_batch : big_batches_) idle_.push_back(&big_batch);
  items_.clear();
  error_ = nullptr;
}

BigBatch* Uploader::next() {
  std::unique_lock lock(mutex_);
  item_available_.wait(lock, [&] { return !items_.empty() || error_ != nullptr; });
  // What was read before the error is delivered first.
  if (items_.empty()) std::rethrow_exception(error_);
  const Item item = items_.front();
  items_.pop_front();
  ended_ = item.big_batch == nullptr;
  return item.big_batch;
}

void Uploader::release(BigBatch* big_batch) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(big_batch);
  }
  idle_available_.notify_one();
}

std::int64_t Uploader::bytes_uploaded() const {
  const std::lock_guard lock(mutex_);
  return bytes_uploaded_;
}

void Uploader::run(std::stop_token stop, std::int64_t epoch) {
  try {
    const std::optional<std::int64_t> num_epochs = loader_.options().num_epochs;
    for (;; ++epoch) {
      loader_.start_epoch(epoch);
      for (;;) {
        BigBatch* const big_batch = take_idle(stop);
        if (big_batch == nullptr) return;
        if (!fill(*big_batch, epoch)) {
          release(big_batch);
          break;
        }
        push({epoch, big_batch});
      }
      push({epoch, nullptr});
      if (num_epochs && epoch + 1 >= *num_epochs) break;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  item_available_.notify_one();
}

BigBatch* Uploader::take_idle(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (!idle_available_.wait(lock, stop, [&] { return !idle_.empty(); })) return nullptr;
  BigBatch* const big_batch = idle_.back();
  idle_.pop_back();
  return big_batch;
}

/// False if the epoch has no more batches.
bool Uploader::fill(BigBatch& big_batch, std::int64_t epoch) {
  big_batch.epoch = epoch;
  big_batch.first_batch = loader_.position().step;
  big_batch.batch_rows.clear();
  big_batch.sample_ids.clear();
  gpu_->wait(stream_.get(), big_batch.consumed.get());
  for (std::int64_t i = 0; i < batches_; ++i) {
    std::optional<Batch> batch = next_batch();
    if (!batch) break;
    copy(*batch, big_batch);
    const EventHandle done = copy_events_[next_event_].get();
    next_event_ = (next_event_ + 1) % copy_events_.size();
    gpu_->record(done, stream_.get());
    copying_.push_back({std::move(*batch), done});
  }
  if (big_batch.batch_rows.empty()) return false;
  gpu_->record(big_batch.uploaded.get(), stream_.get());
  return true;
}

std::optional<Batch> Uploader::next_batch() {
  while (!copying_.empty() && gpu_->is_done(copying_.front().done)) copying_.pop_front();
  if (copying_.size() == copy_events_.size()) {
    gpu_->synchronize(copying_.front().done);
    copying_.pop_front();
  }
  return loader_.next();
}

void Uploader::copy(const Batch& batch, BigBatch& big_batch) {
  const std::span<const std::int64_t> ids = batch.sample_ids();
  const auto rows_before = big_batch.sample_ids.size();
  const TensorView images = batch.images();
  const TensorView labels = batch.labels();
  const std::size_t picture_bytes = images.size_bytes();
  const std::size_t label_bytes = labels.size_bytes();
  if (!ids.empty()) {
    const auto picture = static_cast<std::size_t>(loader_.dataset().info().sample_bytes());
    gpu_->copy_to_device(big_batch.pictures.get() + rows_before * picture, images.data(),
                         picture_bytes, stream_.get());
    if (label_bytes > 0) {
      gpu_->copy_to_device(
          big_batch.labels.get() + rows_before * static_cast<std::size_t>(labels_.input_bytes()),
          labels.data(), label_bytes, stream_.get());
    }
  }
  big_batch.batch_rows.push_back(batch.size());
  big_batch.sample_ids.insert(big_batch.sample_ids.end(), ids.begin(), ids.end());
  const std::lock_guard lock(mutex_);
  bytes_uploaded_ += static_cast<std::int64_t>(picture_bytes + label_bytes);
}

void Uploader::push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
  }
  item_available_.notify_one();
}

}  // namespace chunkio::device
