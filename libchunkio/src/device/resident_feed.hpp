/// Batches of a dataset that lies on the device as a whole: an epoch is a permutation of its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_feed.hpp"
#include "plan/epoch_rows.hpp"

namespace chunkio::device {

/// The thread plans: which rows come next. Nothing is read or copied after construction.
class ResidentFeed final : public BatchFeed {
 public:
  /// Device memory that the pictures and labels of `loader` would take.
  [[nodiscard]] static std::int64_t footprint(const Loader& loader, const LabelPlan& labels);

  /// Reads the dataset and copies it to the device, row after row, with a second loader of the same
  /// options. Blocks on I/O.
  /// \param loader  never started: it says what the order is.
  /// \throws Error as Loader::next() and Gpu's functions.
  ResidentFeed(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches,
               const LabelPlan& labels, cuda::PinMemory pin_memory);
  ~ResidentFeed() override;

  [[nodiscard]] std::int64_t device_bytes() const noexcept override { return device_bytes_; }
  /// Whether it was copied from page-locked memory.
  [[nodiscard]] bool pinned() const noexcept { return pinned_; }

 private:
  void begin_epoch(std::int64_t epoch) override;
  [[nodiscard]] bool fill(BigBatch& big_batch) override;
  [[nodiscard]] LoaderPosition go_to(std::string_view state) override;

  void upload(const LabelPlan& labels, cuda::PinMemory pin_memory);
  [[nodiscard]] std::optional<std::int32_t> device_row(std::int64_t sample_id) const;

  std::int64_t device_bytes_;
  bool pinned_ = false;
  DeviceBuffer pictures_;
  DeviceBuffer labels_;
  /// Of the rows on the device, ascending; empty if those are all rows of the file.
  std::vector<std::int64_t> sample_ids_;

  // Of the thread.
  std::optional<plan::EpochRows> epoch_rows_;
  std::int64_t next_step_ = 0;
  std::optional<LoaderPosition> restored_;
};

}  // namespace chunkio::device
