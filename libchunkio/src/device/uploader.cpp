#include "device/uploader.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/trace.hpp"
#include "read/loader_parts.hpp"

namespace chunkio::device {
namespace {

/// One is prepared while the other is used.
constexpr std::int64_t kEchoBuffers = 2;

/// Of an echo buffer of so many rows: a quarter more than rows of the mean length have.
std::int64_t entries_of(const DatasetInfo& info, std::int64_t rows) {
  const double mean = static_cast<double>(info.sparse->num_entries) /
                      static_cast<double>(std::max<std::int64_t>(info.num_samples, 1));
  constexpr double kMore = 1.25;
  return static_cast<std::int64_t>(
      std::min(mean * kMore * static_cast<double>(rows) + 1,
               static_cast<double>(std::max<std::int64_t>(info.sparse->num_entries, 1))));
}

}  // namespace

std::int64_t Uploader::footprint(const Loader& loader, std::int64_t batches, const SidePlan& side) {
  const DatasetInfo& info = loader.dataset().info();
  if (info.sparse) {
    const std::int64_t rows = batches * loader.options().batch_size;
    const std::int64_t stage = SparseStage::footprint(info, entries_of(info, rows));
    const auto beside = base::checked_multiply(rows, side.input_bytes());
    const auto one = beside ? base::checked_add(stage, *beside) : beside;
    return one ? base::checked_multiply(kEchoBuffers, *one).value_or(kBeyondAnyDevice)
               : kBeyondAnyDevice;
  }
  const std::int64_t row_bytes = info.sample_bytes() + side.input_bytes();
  const std::int64_t factors[] = {kEchoBuffers, batches, loader.options().batch_size, row_bytes};
  const auto rows = base::checked_product<std::int64_t>(factors);
  const std::int64_t slack = kEchoBuffers * static_cast<std::int64_t>(kKernelSlack);
  return rows ? base::checked_add(*rows, slack).value_or(kBeyondAnyDevice) : kBeyondAnyDevice;
}

Uploader::Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches,
                   const SidePlan& side, cuda::PinMemory policy, const MemoryNeeds& needs)
    : gpu_(std::move(gpu)),
      loader_(std::move(loader)),
      batches_(batches),
      side_(side),
      device_bytes_(footprint(loader_, batches, side)),
      stream_(gpu_) {
  const LoaderOptions& options = loader_.options();
  const std::int64_t rows = options.batch_size * batches;
  const DatasetInfo& info = loader_.dataset().info();
  // Null where there is nothing.
  const auto allocate_rows = [&](std::int64_t row_bytes) -> std::byte* {
    if (row_bytes == 0) return nullptr;
    const auto bytes = static_cast<std::size_t>(rows * row_bytes);
    return buffers_.emplace_back(allocate(gpu_, bytes, needs)).get();
  };
  for (std::int64_t i = 0; i < kEchoBuffers; ++i) {
    EchoBuffer& echo_buffer = echo_buffers_.emplace_back();
    if (info.sparse) {
      stages_.emplace_back(gpu_, info, SparseStage::Rows::of_echo_buffer, entries_of(info, rows),
                           policy, needs);
    } else {
      const auto bytes = static_cast<std::size_t>(rows * info.sample_bytes()) + kKernelSlack;
      std::byte* const images = buffers_.emplace_back(allocate(gpu_, bytes, needs)).get();
      // The kernel reads whole words, the last of which nobody may ever have written.
      gpu_->clear(images, bytes, stream_.get());
      echo_buffer.images = images;
    }
    echo_buffer.labels = allocate_rows(side_.labels.input_bytes());
    for (const read::RingField& field : side_.fields) {
      echo_buffer.fields.push_back(allocate_rows(static_cast<std::int64_t>(field.row_bytes)));
    }
    echo_buffer.uploaded = GpuEvent(gpu_);
    echo_buffer.consumed = GpuEvent(gpu_);
    echo_buffer.reserve(batches, rows);
  }
  for (std::int64_t i = 0; i < options.memory.max_held; ++i) {
    copy_timers_.push_back({GpuTimer(gpu_), GpuWaitedTimer(gpu_)});
  }
}

Uploader::~Uploader() {
  try {
    stop();
  } catch (const Error&) {
    // A device that is lost has no copies under way.
  }
}

void Uploader::start(std::int64_t epoch) {
  const auto restored = std::exchange(restored_, std::nullopt);
  const LoaderPosition wanted{epoch, restored && restored->epoch == epoch ? restored->step : 0};
  {
    const std::lock_guard lock(mutex_);
    // A thread that ends with its epoch may still be running when all of that has been taken.
    const bool ends = position_.epoch < epoch && is_last(position_.epoch);
    const bool goes_on = (running_ && !ends) || !ready_.empty() || error_ != nullptr;
    if (goes_on && stands_at(wanted)) {
      position_ = wanted;
      return;
    }
  }
  stop();
  position_ = wanted;
  running_ = true;
  try {
    thread_ = std::jthread([this, wanted](std::stop_token stop) { run(std::move(stop), wanted); });
  } catch (const std::system_error& error) {
    running_ = false;
    throw Error(ErrorCode::out_of_resources,
                std::string("cannot start a thread that feeds the device: ") + error.what());
  }
}

void Uploader::restore(std::string_view state) {
  restored_ = read::place_of(loader_, state).position;
}

bool Uploader::stands_at(const LoaderPosition& position) const {
  const auto place = [&](const LoaderPosition& of) {
    return of.step == loader_.num_steps() ? std::pair(of.epoch + 1, std::int64_t{0})
                                          : std::pair(of.epoch, of.step);
  };
  return place(position_) == place(position);
}

std::optional<EchoBuffer*> Uploader::next(base::Seconds limit, base::WaitHook& look) {
  // Every epoch has as many batches, so nothing need be waited for, and who counts them and never
  // asks for the end has taken all of it, too.
  if (position_.step == loader_.num_steps()) return nullptr;
  const base::TraceRange range(base::Stage::wait_for_upload);
  const auto asked = Clock::now();
  std::unique_lock lock(mutex_);
  while (ready_.empty() && error_ == nullptr && running_) {
    base::Seconds left = base::WaitHook::kInterval;
    // For storage it may wait as long as storage takes.
    if (waits_for_device_since_) {
      left = std::max(asked, *waits_for_device_since_) + limit - Clock::now();
      if (left <= base::Seconds::zero()) return std::nullopt;
    }
    echo_buffer_ready_.wait_for(
        lock, std::min<base::Seconds>({left, base::WaitHook::kInterval, look.interval()}));
    lock.unlock();
    look();
    lock.lock();
  }
  // What was read before the error is delivered first.
  if (ready_.empty()) {
    if (error_ != nullptr) std::rethrow_exception(error_);
    throw Error(ErrorCode::invalid_argument, "no epoch was started; call start_epoch() first");
  }
  EchoBuffer* const echo_buffer = ready_.front();
  ready_.pop_front();
  position_.step = echo_buffer->first_batch + std::ssize(echo_buffer->batch_rows);
  return echo_buffer;
}

void Uploader::release(EchoBuffer* echo_buffer) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(echo_buffer);
  }
  idle_available_.notify_one();
}

BatchFeed::Uploads Uploader::uploads(std::optional<std::int64_t> epoch) const {
  const std::lock_guard lock(mutex_);
  if (!epoch) return uploads_;
  const auto found = std::find_if(epoch_uploads_.begin(), epoch_uploads_.end(),
                                  [&](const EpochUploads& one) { return one.epoch == *epoch; });
  return found == epoch_uploads_.end() ? Uploads{} : found->uploads;
}

Uploader::DeviceWait::DeviceWait(Uploader& uploader) : uploader_(uploader) {
  {
    const std::lock_guard lock(uploader_.mutex_);
    uploader_.waits_for_device_since_ = Clock::now();
  }
  // The consumer sees to it that this does not last for ever.
  uploader_.echo_buffer_ready_.notify_one();
}

Uploader::DeviceWait::~DeviceWait() {
  const std::lock_guard lock(uploader_.mutex_);
  uploader_.waits_for_device_since_.reset();
}

void Uploader::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    idle_.clear();
    for (EchoBuffer& echo_buffer : echo_buffers_) idle_.push_back(&echo_buffer);
    ready_.clear();
    error_ = nullptr;
    running_ = false;
  }
  gpu_->synchronize(stream_.get());
  copying_.clear();
}

void Uploader::run(std::stop_token stop, LoaderPosition from) {
  base::name_this_thread("chunkio feed");
  std::exception_ptr error;
  try {
    while (run_epoch(stop, from)) from = {from.epoch + 1, 0};
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    running_ = false;
  }
  echo_buffer_ready_.notify_one();
}

bool Uploader::run_epoch(const std::stop_token& stop, const LoaderPosition& from) {
  begin_epoch_uploads(from.epoch);
  read::start_at(loader_, from);
  for (;;) {
    EchoBuffer* const echo_buffer = take_idle(stop);
    if (echo_buffer == nullptr) return false;
    echo_buffer->clear(from.epoch);
    if (SparseStage* const stage = stage_of(*echo_buffer)) {
      const DeviceWait waiting(*this);
      stage->clear();
    }
    const bool filled = fill(*echo_buffer, stop);
    if (stop.stop_requested()) return false;
    if (!filled) {
      release(echo_buffer);
      break;
    }
    push(echo_buffer);
  }
  return !is_last(from.epoch);
}

bool Uploader::is_last(std::int64_t epoch) const {
  const std::optional<std::int64_t> num_epochs = loader_.options().io.num_epochs;
  return num_epochs && epoch + 1 >= *num_epochs;
}

EchoBuffer* Uploader::take_idle(const std::stop_token& stop) {
  const base::TraceRange range(base::Stage::wait_for_device_buffer);
  std::unique_lock lock(mutex_);
  idle_available_.wait(lock, stop, [&] { return !idle_.empty(); });
  if (stop.stop_requested()) return nullptr;
  EchoBuffer* const echo_buffer = idle_.back();
  idle_.pop_back();
  return echo_buffer;
}

bool Uploader::fill(EchoBuffer& echo_buffer, const std::stop_token& stop) {
  echo_buffer.first_batch = loader_.position().step;
  gpu_->wait(stream_.get(), echo_buffer.consumed.get());
  for (std::int64_t i = 0; i < batches_ && !stop.stop_requested(); ++i) {
    std::optional<Batch> batch = next_batch();
    if (!batch) break;
    // Held first: if anything below throws, the batch must outlive its copy all the same.
    const Copying& copying =
        copying_.emplace_back(Copying{std::move(*batch), &copy_timers_[next_timers_]});
    next_timers_ = (next_timers_ + 1) % copy_timers_.size();
    gpu_->record(copying.timers->begun.get(), stream_.get());
    // From ordinary memory, a copy waits for all work of its stream.
    const DeviceWait waiting(*this);
    copy(copying.batch, echo_buffer);
    gpu_->record(copying.timers->done.get(), stream_.get());
  }
  if (echo_buffer.batch_rows.empty()) return false;
  gpu_->record(echo_buffer.uploaded.get(), stream_.get());
  return true;
}

std::optional<Batch> Uploader::next_batch() {
  while (!copying_.empty() && gpu_->is_done(copying_.front().timers->done.get())) give_back();
  if (copying_.size() == copy_timers_.size()) {
    const base::TraceRange range(base::Stage::wait_for_copy);
    const DeviceWait waiting(*this);
    gpu_->synchronize(copying_.front().timers->done.get());
    give_back();
  }
  return loader_.next();
}

void Uploader::copy(const Batch& batch, EchoBuffer& echo_buffer) {
  const base::TraceRange range(base::Stage::upload);
  const std::size_t rows_before = echo_buffer.sample_ids.size();
  const auto copy_rows = [&](const Tensor& rows, const std::byte* target, std::int64_t row_bytes) {
    const std::size_t bytes = rows.size_bytes();
    if (bytes == 0) return;
    const std::size_t offset = rows_before * static_cast<std::size_t>(row_bytes);
    // What is const to everybody else.
    gpu_->copy_to_device(const_cast<std::byte*>(target) + offset, rows.data(), bytes,
                         stream_.get());
    count_upload(batch.epoch(), {.bytes = static_cast<std::int64_t>(bytes)});
  };
  if (SparseStage* const stage = stage_of(echo_buffer)) {
    copy_sparse(batch, *stage, echo_buffer);
  } else {
    copy_rows(batch.images(), echo_buffer.images, loader_.dataset().info().sample_bytes());
  }
  copy_rows(batch.labels(), echo_buffer.labels, side_.labels.input_bytes());
  for (std::size_t i = 0; i < side_.fields.size(); ++i) {
    const read::RingField& field = side_.fields[i];
    copy_rows(batch[field.info.name], echo_buffer.fields[i],
              static_cast<std::int64_t>(field.row_bytes));
  }
  echo_buffer.batch_rows.push_back(batch.size());
  for (const std::int64_t id : batch.sample_ids()) {
    echo_buffer.device_rows.push_back(static_cast<std::int32_t>(echo_buffer.sample_ids.size()));
    echo_buffer.sample_ids.push_back(id);
  }
}

void Uploader::copy_sparse(const Batch& batch, SparseStage& stage, EchoBuffer& echo_buffer) {
  const std::int64_t before = stage.device_bytes();
  count_upload(batch.epoch(), {.bytes = stage.append(batch.sparse(), stream_.get())});
  device_bytes_ += stage.device_bytes() - before;
  echo_buffer.sparse = {stage.columns(), stage.values(), stage.row_begins()};
}

SparseStage* Uploader::stage_of(const EchoBuffer& echo_buffer) noexcept {
  return stages_.empty() ? nullptr
                         : &stages_[static_cast<std::size_t>(&echo_buffer - echo_buffers_.data())];
}

void Uploader::give_back() {
  const CopyTimers& timers = *copying_.front().timers;
  count_upload(copying_.front().batch.epoch(),
               {.seconds = gpu_->seconds_between(timers.begun.get(), timers.done.get()).value()});
  copying_.pop_front();
}

void Uploader::push(EchoBuffer* echo_buffer) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(echo_buffer);
  }
  echo_buffer_ready_.notify_one();
}

void Uploader::begin_epoch_uploads(std::int64_t epoch) {
  // As many as the loader remembers, and those that are prepared ahead.
  constexpr std::size_t kEpochs = 16;
  const std::lock_guard lock(mutex_);
  std::erase_if(epoch_uploads_, [&](const EpochUploads& old) { return old.epoch == epoch; });
  if (epoch_uploads_.size() == kEpochs) epoch_uploads_.pop_front();
  epoch_uploads_.push_back({.epoch = epoch});
}

void Uploader::count_upload(std::int64_t epoch, const Uploads& more) {
  const std::lock_guard lock(mutex_);
  uploads_ += more;
  for (EpochUploads& one : epoch_uploads_) {
    if (one.epoch == epoch) one.uploads += more;
  }
}

}  // namespace chunkio::device
