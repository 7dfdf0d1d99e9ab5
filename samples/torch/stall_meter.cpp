#include "stall_meter.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace trainer {

void StallMeter::begin_epoch() {
  num_marks_ = 0;
  times_.clear();
  mark();
}

void StallMeter::mark() {
  if (device_.is_cuda()) {
    if (num_marks_ == events_.size()) {
      // The flag asks for events that know their time.
      events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    }
    events_[num_marks_].record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  } else {
    times_.push_back(Clock::now());
  }
  ++num_marks_;
}

double StallMeter::stall_seconds() const {
  double seconds = 0;
  for (std::size_t i = 0; i + 1 < num_marks_; i += 2) {
    seconds += device_.is_cuda() ? events_[i].elapsedTime(events_[i + 1]) / 1e3
                                 : std::chrono::duration<double>(times_[i + 1] - times_[i]).count();
  }
  return seconds;
}

}  // namespace trainer
