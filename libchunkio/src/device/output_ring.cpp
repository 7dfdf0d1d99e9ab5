#include "device/output_ring.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/trace.hpp"

namespace chunkio::device {
namespace {

std::string name_of(std::int64_t epoch, std::int64_t step) {
  return "batch " + std::to_string(step) + " of epoch " + std::to_string(epoch);
}

}  // namespace

std::int64_t OutputRing::footprint(std::int64_t num_slots, std::int64_t rows,
                                   const BatchMaker& maker, const SidePlan& side) noexcept {
  const std::int64_t row_bytes = maker.row_bytes() + side.output_bytes() + maker.task_bytes();
  const std::int64_t factors[] = {num_slots, rows, row_bytes};
  const auto slots = base::checked_product<std::int64_t>(factors);
  return slots ? base::checked_add(*slots, maker.scratch_bytes(rows)).value_or(kBeyondAnyDevice)
               : kBeyondAnyDevice;
}

OutputRing::OutputRing(std::shared_ptr<Gpu> gpu, std::int64_t num_slots, std::int64_t rows,
                       const BatchMaker& maker, const SidePlan& side, cuda::PinMemory policy,
                       const MemoryNeeds& needs)
    : gpu_(std::move(gpu)), side_(side), slots_(static_cast<std::size_t>(num_slots)) {
  const auto count = static_cast<std::size_t>(rows);
  const std::size_t leading_bytes = count * static_cast<std::size_t>(maker.row_bytes());
  const std::size_t label_bytes = count * static_cast<std::size_t>(side_.labels.output_bytes());
  const std::size_t task_bytes = count * static_cast<std::size_t>(maker.task_bytes());
  if (const std::int64_t bytes = maker.scratch_bytes(rows); bytes > 0) {
    scratch_ = allocate(gpu_, static_cast<std::size_t>(bytes), needs);
  }
  for (Slot& slot : slots_) {
    slot.leading = allocate(gpu_, leading_bytes, needs);
    if (label_bytes > 0) slot.labels = allocate(gpu_, label_bytes, needs);
    slot.side = &side_;
    for (const read::RingField& field : side_.fields) {
      slot.fields.push_back(field.row_bytes == 0 ? DeviceBuffer()
                                                 : allocate(gpu_, count * field.row_bytes, needs));
    }
    slot.field_tensors.resize(side_.fields.size());
    slot.gpu = gpu_;
    slot.tasks = allocate(gpu_, task_bytes, needs);
    slot.host_tasks = CopySource(gpu_, task_bytes, policy);
    slot.begun = GpuTimer(gpu_);
    slot.computed = GpuTimer(gpu_);
    slot.released.emplace_back(gpu_);
    slot.wait_begun = GpuTimer(gpu_);
    slot.wait_ended = GpuTimer(gpu_);
    slot.sample_ids.reserve(count);
  }
  // A copy from ordinary memory waits for the kernels of all slots, so all are of one kind.
  if (std::any_of(slots_.begin(), slots_.end(),
                  [](const Slot& slot) { return !slot.host_tasks.locked(); })) {
    for (Slot& slot : slots_) {
      slot.host_tasks = CopySource(gpu_, task_bytes, cuda::PinMemory::off);
    }
  }
  device_bytes_ = footprint(num_slots, rows, maker, side_);
  for (Slot& slot : slots_) idle_.push_back(&slot);
}

OutputRing::~OutputRing() {
  try {
    for (Slot& slot : slots_) {
      static_cast<void>(wait_until_done(*gpu_, slot.computed.get(), base::Seconds::max()));
      for (const GpuEvent& released : slot.released) {
        static_cast<void>(wait_until_done(*gpu_, released.get(), base::Seconds::max()));
      }
    }
  } catch (const Error&) {
    // A device that is lost does nothing any more.
  }
}

OutputRing::Slot& OutputRing::take(base::Seconds limit, base::WaitHook& look) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !idle_.empty() || error_ != nullptr; };
  if (!ready()) {
    const base::TraceRange range(base::Stage::wait_for_output);
    // The calls that ended early belong to one wait.
    if (!held_since_) held_since_ = Clock::now();
    static_cast<void>(
        look.wait(slot_released_, lock, limit - (Clock::now() - *held_since_), ready));
  }
  if (error_) std::rethrow_exception(error_);
  held_since_.reset();
  if (idle_.empty()) {
    std::string held;
    for (const Slot& slot : slots_) {
      held += (held.empty() ? "" : ", ") + name_of(slot.epoch, slot.step);
    }
    throw base::WaitEnded(ErrorCode::timed_out,
                          "all " + std::to_string(slots_.size()) +
                              " output batches are held (max_held), and none was released within " +
                              base::to_text(limit) + " (release_timeout_seconds): " + held +
                              "; release one before next(), or raise max_held",
                          "max_held", "release_timeout_seconds");
  }
  Slot& slot = *idle_.front();
  idle_.erase(idle_.begin());
  return slot;
}

void OutputRing::put_back(Slot& slot) {
  const std::lock_guard lock(mutex_);
  idle_.insert(idle_.begin(), &slot);
}

std::string OutputRing::unfinished() {
  const auto oldest = [&](const auto& is_done) -> const Slot* {
    const Slot* found = nullptr;
    for (const Slot& slot : slots_) {
      const bool older = slot.use > 0 && (found == nullptr || slot.use < found->use);
      if (older && !is_done(slot)) found = &slot;
    }
    return found;
  };
  const Slot* const made =
      oldest([&](const Slot& slot) { return gpu_->is_done(slot.computed.get()); });
  if (made != nullptr) {
    const std::string name = name_of(made->epoch, made->step);
    return !made->before ? name + " is not made"
                         : name +
                               " is not made, perhaps because work that was put into the "
                               "consumer's stream for " +
                               name_of(made->before->epoch, made->before->step) +
                               ", whose buffer it gets, is not done";
  }
  // Of those that nobody holds: who holds a batch may name further streams meanwhile.
  const std::lock_guard lock(mutex_);
  const Slot* used = nullptr;
  for (const Slot* const slot : idle_) {
    const bool older = slot->use > 0 && (used == nullptr || slot->use < used->use);
    const auto is_done = [&](const GpuEvent& released) { return gpu_->is_done(released.get()); };
    if (older && !std::all_of(slot->released.begin(), slot->released.end(), is_done)) used = slot;
  }
  return used != nullptr ? "work that was put into the consumer's stream for " +
                               name_of(used->epoch, used->step) + " is not done"
                         : "a copy to the device is not done";
}

std::shared_ptr<OutputRing::Slot> OutputRing::lease(Slot& slot) {
  // If the lease cannot be made, shared_ptr runs the deleter.
  return {&slot, [ring = shared_from_this()](Slot* leased) { ring->release(*leased); }};
}

void OutputRing::release(Slot& slot) noexcept {
  try {
    for (std::size_t i = 0; i < slot.consumers.size(); ++i) {
      gpu_->record(slot.released[i].get(), slot.consumers[i]);
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(&slot);
  } catch (...) {
    // The slot is lost; the next take() throws the reason.
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  slot_released_.notify_one();
}

}  // namespace chunkio::device

namespace chunkio::internal {

void OutputSlot::use_on(cuda::Stream stream) {
  if (std::find(consumers.begin(), consumers.end(), stream) != consumers.end()) return;
  if (released.size() == consumers.size()) released.emplace_back(gpu);
  gpu->wait(stream, computed.get());
  consumers.push_back(stream);
}

}  // namespace chunkio::internal
