/// What comes to the device beside the images: labels, converted, and fields as they are.
#pragma once

#include <cstdint>
#include <vector>

#include <chunkio/loader.hpp>

#include "device/gpu.hpp"
#include "read/loader_parts.hpp"
#include "read/ring.hpp"

namespace chunkio::device {

struct SidePlan {
  read::RingLayout layout = {};  ///< Of the loader's batches.
  LabelPlan labels = {};
  std::vector<read::RingField> fields = {};  ///< Those of LoaderOptions::fields.

  /// What `loader` delivers beside its images, with labels of type `wanted`.
  [[nodiscard]] static SidePlan of(const Loader& loader, DType wanted) {
    const read::RingLayout& layout = read::ring_of(loader)->layout();
    SidePlan plan{.layout = layout, .fields = layout.fields};
    if (!layout.has_labels) return plan;
    const FieldInfo& labels = layout.fields.front().info;
    plan.labels = {
        .values = labels.row_shape.num_elements(), .input = labels.dtype, .output = wanted};
    plan.fields.erase(plan.fields.begin());
    return plan;
  }

  /// Of a sample, on its way to the device and there.
  [[nodiscard]] std::int64_t input_bytes() const noexcept {
    return labels.input_bytes() + field_bytes();
  }
  /// Of a sample of an output batch.
  [[nodiscard]] std::int64_t output_bytes() const noexcept {
    return labels.output_bytes() + field_bytes();
  }

 private:
  [[nodiscard]] std::int64_t field_bytes() const noexcept {
    std::int64_t bytes = 0;
    for (const read::RingField& field : fields) {
      bytes += static_cast<std::int64_t>(field.row_bytes);
    }
    return bytes;
  }
};

}  // namespace chunkio::device
