/// What the rows of an echo buffer become on the device: normalised images, or dense rows of a CSR
/// matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_feed.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// Where a batch is made. All addresses are of device memory.
struct BatchTarget {
  const std::byte* tasks = nullptr;  ///< BatchMaker::write_tasks(), uploaded.
  std::int64_t num_rows = 0;         ///< >= 1
  std::byte* output = nullptr;
  std::byte* output_labels = nullptr;
  std::byte* scratch = nullptr;  ///< BatchMaker::scratch_bytes()
};

class BatchMaker {
 public:
  BatchMaker() = default;
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;
  virtual ~BatchMaker() = default;

  /// Of the output.
  [[nodiscard]] virtual DType dtype() const noexcept = 0;
  [[nodiscard]] virtual Shape output_shape(std::int64_t rows) const = 0;
  [[nodiscard]] virtual std::int64_t row_bytes() const noexcept = 0;
  /// What the kernels are told of a row: RowTasks of all rows come first.
  [[nodiscard]] virtual std::int64_t task_bytes() const noexcept = 0;
  /// Device memory that all batches share: their kernels come one after the other.
  [[nodiscard]] virtual std::int64_t scratch_bytes(std::int64_t rows) const noexcept = 0;

  /// \param rows   of the echo buffer. \param tasks  task_bytes() for each row.
  virtual void write_tasks(const EchoBuffer& from, std::span<const std::int32_t> rows,
                           std::int64_t echo_pass, std::byte* tasks) const = 0;
  /// \throws Error as Gpu.
  virtual void make(const EchoBuffer& from, const BatchTarget& target,
                    StreamHandle stream) const = 0;
};

/// \param options  mean and std are completed: one number for each channel.
/// \param seed     of augmentation, unless the options have one.
/// \throws Error invalid_argument: options of the other kind; and as Normalizer, Densifier, Gpu.
[[nodiscard]] std::unique_ptr<BatchMaker> make_batch_maker(std::shared_ptr<Gpu> gpu,
                                                           const DatasetInfo& info,
                                                           cuda::DeviceOptions& options,
                                                           const LabelPlan& labels,
                                                           std::uint64_t seed);

}  // namespace chunkio::device
