#include "device/batch_maker.hpp"

#include <new>
#include <string>
#include <utility>

#include <chunkio/error.hpp>

#include "base/require.hpp"
#include "device/augmentation.hpp"
#include "device/dense_plan.hpp"
#include "device/normalize_plan.hpp"
#include "device/resize_kernel_plan.hpp"

namespace chunkio::device {
namespace {

class ImageMaker final : public BatchMaker {
 public:
  ImageMaker(std::shared_ptr<Gpu> gpu, NormalizePlan plan, const LabelPlan& labels,
             std::uint64_t seed)
      : gpu_(std::move(gpu)), plan_(std::move(plan)), labels_(labels), seed_(seed) {
    gpu_->require_supported(plan_);
  }

  [[nodiscard]] DType dtype() const noexcept override { return plan_.dtype; }
  [[nodiscard]] Shape output_shape(std::int64_t rows) const override {
    return plan_.output_shape(rows);
  }
  [[nodiscard]] std::int64_t row_bytes() const noexcept override { return plan_.output_bytes(); }
  [[nodiscard]] std::int64_t task_bytes() const noexcept override { return row_task_bytes(plan_); }
  [[nodiscard]] std::int64_t scratch_bytes(std::int64_t rows) const noexcept override {
    return resize_scratch_bytes(plan_, rows);
  }

  void write_tasks(const EchoBuffer& from, std::span<const std::int32_t> rows,
                   std::int64_t echo_pass, std::byte* tasks) const override {
    const base::PhiloxKey key =
        base::augmentation_key(seed_, static_cast<std::uint64_t>(from.epoch));
    std::byte* box = tasks + rows.size() * sizeof(RowTask);
    for (const std::int32_t row : rows) {
      const auto index = static_cast<std::size_t>(row);
      const Augmentation wanted = augmentation_of(plan_, key, from.sample_ids[index],
                                                  static_cast<std::uint32_t>(echo_pass));
      new (tasks) RowTask{from.device_rows[index], wanted.crop};
      tasks += sizeof(RowTask);
      if (!plan_.resized_crop) continue;
      new (box) image::Box(wanted.box);
      box += sizeof(image::Box);
    }
  }

  void make(const EchoBuffer& from, const BatchTarget& target, StreamHandle stream) const override {
    const auto* const tasks = reinterpret_cast<const RowTask*>(target.tasks);
    gpu_->normalize(
        plan_, labels_,
        {.images = from.images,
         .labels = from.labels,
         .tasks = tasks,
         .num_rows = target.num_rows,
         .output = target.output,
         .output_labels = target.output_labels,
         .boxes = plan_.resized_crop ? reinterpret_cast<const image::Box*>(tasks + target.num_rows)
                                     : nullptr,
         .scratch = target.scratch},
        stream);
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  NormalizePlan plan_;
  LabelPlan labels_;
  std::uint64_t seed_;
};

class DenseMaker final : public BatchMaker {
 public:
  DenseMaker(std::shared_ptr<Gpu> gpu, const DensePlan& plan, const LabelPlan& labels)
      : gpu_(std::move(gpu)), plan_(plan), labels_(labels) {}

  [[nodiscard]] DType dtype() const noexcept override { return plan_.dtype; }
  [[nodiscard]] Shape output_shape(std::int64_t rows) const override {
    return Shape{rows, plan_.columns};
  }
  [[nodiscard]] std::int64_t row_bytes() const noexcept override { return plan_.output_bytes(); }
  [[nodiscard]] std::int64_t task_bytes() const noexcept override {
    return static_cast<std::int64_t>(sizeof(RowTask) + sizeof(RowEntries));
  }
  [[nodiscard]] std::int64_t scratch_bytes(std::int64_t rows) const noexcept override {
    return plan_.scaled ? rows * static_cast<std::int64_t>(sizeof(float)) : 0;
  }

  void write_tasks(const EchoBuffer& from, std::span<const std::int32_t> rows,
                   std::int64_t /*echo_pass*/, std::byte* tasks) const override {
    std::byte* entries = tasks + rows.size() * sizeof(RowTask);
    for (const std::int32_t row : rows) {
      const std::int32_t there = from.device_rows[static_cast<std::size_t>(row)];
      const std::int64_t begin = from.sparse.row_begins[static_cast<std::size_t>(there)];
      const std::int64_t end = from.sparse.row_begins[static_cast<std::size_t>(there) + 1];
      new (tasks) RowTask{there, {}};
      new (entries) RowEntries{begin, end - begin};
      tasks += sizeof(RowTask);
      entries += sizeof(RowEntries);
    }
  }

  void make(const EchoBuffer& from, const BatchTarget& target, StreamHandle stream) const override {
    const auto* const tasks = reinterpret_cast<const RowTask*>(target.tasks);
    gpu_->densify(plan_, labels_,
                  {.columns = from.sparse.columns,
                   .values = from.sparse.values,
                   .labels = from.labels,
                   .tasks = tasks,
                   .entries = reinterpret_cast<const RowEntries*>(tasks + target.num_rows),
                   .num_rows = target.num_rows,
                   .output = target.output,
                   .output_labels = target.output_labels,
                   .factors = reinterpret_cast<float*>(target.scratch)},
                  stream);
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  DensePlan plan_;
  LabelPlan labels_;
};

bool says_nothing(const NormalizeOptions& options) {
  return options.mean.empty() && options.std.empty() && options.crop_height == 0 &&
         options.crop_width == 0 && options.padding == 0 && !options.random_crop &&
         !options.random_resized_crop && !options.flip && !options.seed &&
         options.dtype == DType::float32 && options.layout == Layout::nchw;
}

bool says_nothing(const DenseOptions& options) {
  return options.dtype == DType::float32 && !options.binary && !options.row_sum && !options.log1p;
}

}  // namespace

std::unique_ptr<BatchMaker> make_batch_maker(std::shared_ptr<Gpu> gpu, const DatasetInfo& info,
                                             cuda::DeviceOptions& options, const LabelPlan& labels,
                                             std::uint64_t seed) {
  if (info.sparse) {
    base::require(says_nothing(options.normalize),
                  info.path + " has rows of a CSR matrix; DeviceOptions::normalize is of images");
    return std::make_unique<DenseMaker>(std::move(gpu), make_dense_plan(info, options.dense),
                                        labels);
  }
  base::require(says_nothing(options.dense),
                info.path + " has no sparse rows, which DeviceOptions::dense is of");
  return std::make_unique<ImageMaker>(std::move(gpu), make_normalize_plan(info, options.normalize),
                                      labels, options.normalize.seed.value_or(seed));
}

}  // namespace chunkio::device
