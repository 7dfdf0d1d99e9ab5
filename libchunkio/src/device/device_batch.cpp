#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "device/output_ring.hpp"

namespace chunkio::cuda {

DeviceBatch::DeviceBatch(std::shared_ptr<chunkio::internal::OutputSlot> slot) noexcept
    : slot_(std::move(slot)) {}
Tensor DeviceBatch::leading() const { return slot_ ? slot_->leading_tensor : Tensor{}; }
Tensor DeviceBatch::labels() const { return slot_ ? slot_->label_tensor : Tensor{}; }

Tensor DeviceBatch::images() const {
  if (!slot_ || slot_->side->layout.has_images) return leading();
  throw Error(ErrorCode::unsupported, "the batch has no images, but rows of the sparse matrix " +
                                          slot_->side->layout.leading.info.name +
                                          "; take them with leading()");
}

Tensor DeviceBatch::operator[](std::string_view name) const {
  if (!slot_) {
    throw Error(ErrorCode::not_found,
                "this batch was moved from, so it has no '" + std::string(name) + "'");
  }
  const read::RingLayout& layout = slot_->side->layout;
  const std::size_t array = read::find_array(layout, name);
  if (array == read::kLeading) return leading();
  if (!layout.has_labels) return slot_->field_tensors[array];
  return array == 0 ? labels() : slot_->field_tensors[array - 1];
}

std::span<const std::int64_t> DeviceBatch::sample_ids() const {
  if (!slot_) return {};
  return slot_->sample_ids;
}
std::int64_t DeviceBatch::size() const { return std::ssize(sample_ids()); }
std::int64_t DeviceBatch::epoch() const { return slot_ ? slot_->epoch : 0; }
std::int64_t DeviceBatch::step() const { return slot_ ? slot_->step : 0; }
std::int64_t DeviceBatch::echo_pass() const { return slot_ ? slot_->echo_pass : 0; }
void DeviceBatch::use_on(Stream stream) const {
  if (slot_) slot_->use_on(stream);
}

bool DeviceBatch::contains(const Tensor& tensor) const {
  if (!slot_ || tensor.empty()) return false;
  const auto& fields = slot_->field_tensors;
  return tensor == leading() || tensor == labels() ||
         std::find(fields.begin(), fields.end(), tensor) != fields.end();
}

}  // namespace chunkio::cuda
