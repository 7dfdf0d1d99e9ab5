#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "device/output_ring.hpp"

namespace chunkio::cuda {

DeviceBatch::DeviceBatch(std::shared_ptr<internal::OutputSlot> slot) noexcept
    : slot_(std::move(slot)) {}
DeviceTensor DeviceBatch::images() const { return slot_ ? slot_->images_view : DeviceTensor{}; }
DeviceTensor DeviceBatch::labels() const { return slot_ ? slot_->labels_view : DeviceTensor{}; }

DeviceTensor DeviceBatch::field(std::string_view name) const {
  if (slot_) {
    const auto& fields = slot_->side->fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].info.name == name) return slot_->field_views[i];
    }
  }
  throw Error(ErrorCode::not_found,
              "the batch has no field '" + std::string(name) + "'; name it in fields");
}

std::span<const std::int64_t> DeviceBatch::sample_ids() const {
  if (!slot_) return {};
  return slot_->sample_ids;
}
std::int64_t DeviceBatch::size() const { return std::ssize(sample_ids()); }
std::int64_t DeviceBatch::epoch() const { return slot_ ? slot_->epoch : 0; }
std::int64_t DeviceBatch::step() const { return slot_ ? slot_->step : 0; }
std::int64_t DeviceBatch::echo_pass() const { return slot_ ? slot_->echo_pass : 0; }
void DeviceBatch::use_on(Stream stream) {
  if (slot_) slot_->consumer = stream;
}

void DeviceBatch::require_contains(const DeviceTensor& tensor) const {
  if (tensor == images() || tensor == labels()) return;
  if (slot_ && std::ranges::find(slot_->field_views, tensor) != slot_->field_views.end()) return;
  throw Error(ErrorCode::invalid_argument,
              "the tensor is not of this batch, whose lease would not keep its memory valid");
}

}  // namespace chunkio::cuda
