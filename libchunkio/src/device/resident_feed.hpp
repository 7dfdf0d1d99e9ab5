/// Batches of a dataset that lies on the device as a whole: an epoch is a permutation of its rows.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_feed.hpp"
#include "device/memory_needs.hpp"
#include "device/side_plan.hpp"
#include "device/sparse_stage.hpp"
#include "plan/epoch_rows.hpp"

namespace chunkio::device {

/// All rows that a loader delivers, on the device as uint8.
struct ResidentDataset {
  /// Device memory that it would take.
  [[nodiscard]] static std::int64_t footprint(const Loader& loader, const SidePlan& side);

  /// Reads the rows with a second loader of the same options, one after the other, and copies them.
  /// Blocks on I/O. \throws Error as Loader, Gpu and allocate().
  ResidentDataset(const std::shared_ptr<Gpu>& gpu, const Loader& loader, const SidePlan& side,
                  cuda::PinMemory pin_memory, const MemoryNeeds& needs);

  /// Where a row of the file is; nowhere, if it could not be read (OnError::skip).
  [[nodiscard]] std::optional<std::int32_t> device_row(std::int64_t sample_id) const;

  std::int64_t device_bytes;
  std::int64_t bytes_uploaded = 0;
  DeviceBuffer images;
  std::optional<SparseStage> sparse;  ///< In place of images.
  DeviceBuffer labels;
  std::vector<DeviceBuffer> fields;  ///< One for each of SidePlan::fields.
  bool pinned = false;               ///< It was copied from page-locked memory.
  LoaderStats stats;                 ///< Of the loader that read it.
  std::vector<SkippedRows> skipped;
  /// Rows that follow each other in the file and on the device.
  struct Run {
    std::int64_t first_id;
    std::int64_t end_id;
    std::int32_t device_row;  ///< Of the first.
  };
  /// Of the rows on the device, ascending; absent: all rows of the file, at their row numbers.
  std::optional<std::vector<Run>> runs;
};

/// Nothing is read or copied, only planned, and that by the caller of next(): planning a batch
/// takes less time than handing it from thread to thread.
class ResidentFeed final : public BatchFeed {
 public:
  /// \param loader  never started: it says what the order is.
  /// \param batches  of the loader in an echo buffer, no more than an epoch has.
  ResidentFeed(Loader loader, std::int64_t batches, ResidentDataset dataset);

  void start(std::int64_t epoch) override;
  void restore(std::string_view state) override;
  /// Never waits for the device.
  [[nodiscard]] std::optional<EchoBuffer*> next(base::Seconds limit, base::WaitHook& look) override;
  void release(EchoBuffer*) override {}

  [[nodiscard]] const Loader& loader() const noexcept override { return loader_; }
  /// What was read was of no epoch.
  [[nodiscard]] LoaderStats loader_stats(std::optional<std::int64_t> epoch) const override {
    return epoch ? LoaderStats{} : dataset_.stats;
  }
  [[nodiscard]] std::vector<SkippedRows> skipped() const override { return dataset_.skipped; }
  [[nodiscard]] Uploads uploads(std::optional<std::int64_t> epoch) const override {
    return {.bytes = epoch ? 0 : dataset_.bytes_uploaded};
  }
  [[nodiscard]] std::int64_t device_bytes() const noexcept override {
    return dataset_.device_bytes;
  }

 private:
  /// Makes `rows_` those of the epoch: O(samples of the rank), unless they were made ahead.
  void plan(base::WaitHook& look);
  void plan_ahead(std::int64_t epoch);
  void append_batch(std::int64_t step);

  Loader loader_;
  std::int64_t batches_;
  ResidentDataset dataset_;
  EchoBuffer echo_buffer_;

  std::int64_t epoch_ = 0;
  std::int64_t next_step_ = 0;
  std::optional<LoaderPosition> restored_;
  std::optional<plan::EpochRows> rows_;  // Of `epoch_`, once its first batch was asked for.
  /// Of the epoch that probably comes next, so that its first batch need not wait for it.
  std::future<plan::EpochRows> rows_ahead_;
  std::int64_t ahead_epoch_ = 0;
};

}  // namespace chunkio::device
