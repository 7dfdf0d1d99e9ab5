#include "device/uploader.hpp"

#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/trace.hpp"

namespace chunkio::device {

std::int64_t Uploader::footprint(const Loader& loader, std::int64_t batches,
                                 const LabelPlan& labels) {
  const std::int64_t row_bytes = loader.dataset().info().sample_bytes() + labels.input_bytes();
  const std::int64_t factors[] = {kBigBatches, batches, loader.options().batch_size, row_bytes};
  const auto rows = base::checked_product<std::int64_t>(factors);
  const std::int64_t slack = kBigBatches * static_cast<std::int64_t>(kKernelSlack);
  return rows ? base::checked_add(*rows, slack).value_or(kBeyondAnyDevice) : kBeyondAnyDevice;
}

Uploader::Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches,
                   const LabelPlan& labels, const MemoryNeeds& needs)
    : BatchFeed(std::move(gpu), std::move(loader), batches),
      labels_(labels),
      device_bytes_(footprint(this->loader(), batches, labels)),
      stream_(shared_gpu()) {
  const LoaderOptions& options = this->loader().options();
  const std::int64_t rows = options.batch_size * batches;
  const auto picture_bytes =
      static_cast<std::size_t>(rows * this->loader().dataset().info().sample_bytes()) +
      kKernelSlack;
  const auto label_bytes = static_cast<std::size_t>(rows * labels_.input_bytes());
  for (BigBatch& big_batch : big_batches()) {
    std::byte* const pictures =
        buffers_.emplace_back(allocate(shared_gpu(), picture_bytes, needs)).get();
    // The kernel reads whole words, the last of which nobody may ever have written.
    shared_gpu()->clear(pictures, picture_bytes, stream_.get());
    big_batch.pictures = pictures;
    if (label_bytes > 0) {
      big_batch.labels = buffers_.emplace_back(allocate(shared_gpu(), label_bytes, needs)).get();
    }
  }
  for (std::int64_t i = 0; i < options.max_held; ++i) {
    copy_timers_.push_back({GpuTimer(shared_gpu()), GpuTimer(shared_gpu())});
  }
}

Uploader::~Uploader() {
  try {
    stop();
  } catch (const Error&) {
    // A device that is lost has no copies under way.
  }
}

void Uploader::settle() {
  gpu().synchronize(stream_.get());
  copying_.clear();
}

bool Uploader::fill(BigBatch& big_batch, const std::stop_token& stop) {
  big_batch.first_batch = loader().position().step;
  gpu().wait(stream_.get(), big_batch.consumed.get());
  for (std::int64_t i = 0; i < batches() && !stop.stop_requested(); ++i) {
    std::optional<Batch> batch = next_batch();
    if (!batch) break;
    // Held first: if anything below throws, the batch must outlive its copy all the same.
    const Copying& copying =
        copying_.emplace_back(Copying{std::move(*batch), &copy_timers_[next_timers_]});
    next_timers_ = (next_timers_ + 1) % copy_timers_.size();
    gpu().record(copying.timers->begun.get(), stream_.get());
    // From ordinary memory, a copy waits for all work of its stream.
    const DeviceWait waiting(*this);
    copy(copying.batch, big_batch);
    gpu().record(copying.timers->done.get(), stream_.get());
  }
  if (big_batch.batch_rows.empty()) return false;
  gpu().record(big_batch.uploaded.get(), stream_.get());
  return true;
}

std::optional<Batch> Uploader::next_batch() {
  while (!copying_.empty() && gpu().is_done(copying_.front().timers->done.get())) give_back();
  if (copying_.size() == copy_timers_.size()) {
    const base::TraceRange range(base::Stage::wait_for_copy);
    const DeviceWait waiting(*this);
    gpu().synchronize(copying_.front().timers->done.get());
    give_back();
  }
  return own_loader().next();
}

void Uploader::give_back() {
  const CopyTimers& timers = *copying_.front().timers;
  count_upload({.seconds = gpu().seconds_between(timers.begun.get(), timers.done.get())});
  copying_.pop_front();
}

void Uploader::copy(const Batch& batch, BigBatch& big_batch) {
  const base::TraceRange range(base::Stage::upload);
  const std::size_t rows_before = big_batch.sample_ids.size();
  const auto copy_rows = [&](const TensorView& rows, const std::byte* target,
                             std::int64_t row_bytes) {
    const std::size_t bytes = rows.size_bytes();
    if (bytes == 0) return;
    const std::size_t offset = rows_before * static_cast<std::size_t>(row_bytes);
    // What is const to everybody else.
    gpu().copy_to_device(const_cast<std::byte*>(target) + offset, rows.data(), bytes,
                         stream_.get());
    count_upload({.bytes = static_cast<std::int64_t>(bytes)});
  };
  copy_rows(batch.images(), big_batch.pictures, loader().dataset().info().sample_bytes());
  copy_rows(batch.labels(), big_batch.labels, labels_.input_bytes());
  big_batch.batch_rows.push_back(batch.size());
  for (const std::int64_t id : batch.sample_ids()) {
    big_batch.device_rows.push_back(static_cast<std::int32_t>(big_batch.sample_ids.size()));
    big_batch.sample_ids.push_back(id);
  }
}

}  // namespace chunkio::device
