#include "device/output_ring.hpp"

#include <algorithm>

#include <chunkio/error.hpp>

namespace chunkio::device {

OutputRing::OutputRing(std::shared_ptr<Gpu> gpu, std::int64_t num_slots, std::int64_t rows,
                       const NormalizePlan& plan, const LabelPlan& labels)
    : gpu_(std::move(gpu)), slots_(static_cast<std::size_t>(num_slots)) {
  const auto count = static_cast<std::size_t>(rows);
  const std::size_t picture_bytes = count * static_cast<std::size_t>(plan.output_bytes());
  const std::size_t label_bytes = count * static_cast<std::size_t>(labels.output_bytes());
  const std::size_t task_bytes = count * sizeof(RowTask);
  for (Slot& slot : slots_) {
    slot.pictures = DeviceBuffer(gpu_, picture_bytes);
    if (label_bytes > 0) slot.labels = DeviceBuffer(gpu_, label_bytes);
    slot.tasks = DeviceBuffer(gpu_, task_bytes);
    slot.host_tasks = PinnedBuffer(gpu_, task_bytes);
    slot.begun = GpuTimer(gpu_);
    slot.computed = GpuTimer(gpu_);
    slot.released = GpuEvent(gpu_);
    slot.wait_begun = GpuTimer(gpu_);
    slot.wait_ended = GpuTimer(gpu_);
    slot.sample_ids.reserve(count);
  }
  device_bytes_ = num_slots * static_cast<std::int64_t>(picture_bytes + label_bytes + task_bytes);
  for (Slot& slot : slots_) idle_.push_back(&slot);
  std::reverse(idle_.begin(), idle_.end());  // Taken from the back, so first used in order.
}

OutputRing::~OutputRing() {
  try {
    for (Slot& slot : slots_) {
      gpu_->synchronize(slot.computed.get());
      gpu_->synchronize(slot.released.get());
    }
  } catch (const Error&) {
    // A device that is lost does nothing any more.
  }
}

OutputRing::Slot& OutputRing::take() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (idle_.empty()) {
    std::string held;
    for (const Slot& slot : slots_) {
      held += (held.empty() ? "" : ", ") + std::to_string(slot.step) + " of epoch " +
              std::to_string(slot.epoch);
    }
    throw Error(ErrorCode::out_of_resources, "all " + std::to_string(slots_.size()) +
                                                 " output batches are held (max_held): batch " +
                                                 held +
                                                 "; release one before next(), or raise max_held");
  }
  Slot& slot = *idle_.back();
  idle_.pop_back();
  return slot;
}

void OutputRing::put_back(Slot& slot) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(&slot);
}

std::shared_ptr<OutputRing::Slot> OutputRing::lease(Slot& slot) {
  // If the lease cannot be made, shared_ptr runs the deleter.
  return {&slot, [ring = shared_from_this()](Slot* leased) { ring->release(*leased); }};
}

void OutputRing::release(Slot& slot) noexcept {
  try {
    gpu_->record(slot.released.get(), slot.consumer);
    put_back(slot);
  } catch (...) {
    // The slot is lost; whoever asks for another one is told why.
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

}  // namespace chunkio::device
