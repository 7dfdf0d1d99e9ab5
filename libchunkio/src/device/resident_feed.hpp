/// Batches of a dataset that lies on the device as a whole: an epoch is a permutation of its rows.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_feed.hpp"
#include "device/memory_needs.hpp"
#include "plan/epoch_rows.hpp"

namespace chunkio::device {

/// All rows that a loader delivers, on the device as uint8.
class ResidentDataset {
 public:
  /// Device memory that it would take.
  [[nodiscard]] static std::int64_t footprint(const Loader& loader, const LabelPlan& labels);

  /// Reads the rows with a second loader of the same options, one after the other, and copies them.
  /// Blocks on I/O. \throws Error as Loader, Gpu and allocate().
  ResidentDataset(const std::shared_ptr<Gpu>& gpu, const Loader& loader, const LabelPlan& labels,
                  cuda::PinMemory pin_memory, const MemoryNeeds& needs);

  [[nodiscard]] const std::byte* pictures() const noexcept { return pictures_.get(); }
  [[nodiscard]] const std::byte* labels() const noexcept { return labels_.get(); }
  [[nodiscard]] std::int64_t device_bytes() const noexcept { return device_bytes_; }
  [[nodiscard]] std::int64_t bytes_uploaded() const noexcept { return bytes_uploaded_; }
  /// Whether it was copied from page-locked memory.
  [[nodiscard]] bool pinned() const noexcept { return pinned_; }
  /// Of the loader that read it.
  [[nodiscard]] const LoaderStats& stats() const noexcept { return stats_; }
  [[nodiscard]] const std::vector<SkippedRows>& skipped() const noexcept { return skipped_; }
  /// Where a row of the file is; nowhere, if it could not be read (OnError::skip).
  [[nodiscard]] std::optional<std::int32_t> device_row(std::int64_t sample_id) const;

 private:
  std::int64_t device_bytes_;
  std::int64_t bytes_uploaded_ = 0;
  DeviceBuffer pictures_;
  DeviceBuffer labels_;
  bool pinned_ = false;
  LoaderStats stats_;
  std::vector<SkippedRows> skipped_;
  /// Of the rows on the device, ascending; absent: all rows of the file.
  std::optional<std::vector<std::int64_t>> sample_ids_;
};

/// The thread plans: which rows come next. Nothing is read or copied.
class ResidentFeed final : public BatchFeed {
 public:
  /// \param loader  never started: it says what the order is.
  ResidentFeed(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches,
               ResidentDataset dataset);
  ~ResidentFeed() override;

  [[nodiscard]] std::int64_t device_bytes() const noexcept override {
    return dataset_.device_bytes();
  }
  [[nodiscard]] LoaderStats loader_stats() const override { return dataset_.stats(); }
  [[nodiscard]] std::vector<SkippedRows> skipped() const override { return dataset_.skipped(); }

 private:
  void begin_epoch(std::int64_t epoch) override;
  [[nodiscard]] bool fill(BigBatch& big_batch, const std::stop_token& stop) override;
  void go_to(std::string_view state) override;
  void plan_ahead(std::int64_t epoch);

  ResidentDataset dataset_;

  // Of the thread.
  std::optional<plan::EpochRows> epoch_rows_;
  /// Of the epoch that probably comes next, so that its first batch need not wait for it.
  std::int64_t planned_epoch_ = 0;
  std::future<plan::EpochRows> planned_rows_;
  std::int64_t next_step_ = 0;
  std::optional<LoaderPosition> restored_;
};

}  // namespace chunkio::device
