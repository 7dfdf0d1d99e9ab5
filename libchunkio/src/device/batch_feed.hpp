/// What a DeviceLoader makes its batches of: images or rows on the device, and which of them come
/// next.
///
/// They come from the loader, batch by batch (Uploader), or lie on the device (ResidentFeed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <chunkio/loader.hpp>

#include "device/bounded_wait.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// Batches of the loader that are used together.
struct EchoBuffer {
  // On the device.
  const std::byte* images = nullptr;
  /// Of a CSR matrix, in place of images.
  struct {
    const std::byte* columns = nullptr;
    const std::byte* values = nullptr;
    /// Of each row on the device its first entry, and where the last one ends. In host memory.
    std::span<const std::int64_t> row_begins = {};
  } sparse;
  const std::byte* labels = nullptr;
  std::vector<const std::byte*> fields;  ///< One for each of SidePlan::fields.
  // Both empty where nothing is copied.
  GpuEvent uploaded;  ///< They are there.
  GpuEvent consumed;  ///< To be recorded behind the last work that reads them.

  std::int64_t epoch = 0;
  std::int64_t first_batch = 0;          ///< Of the loader, in the epoch.
  std::vector<std::int64_t> batch_rows;  ///< Of each batch.
  // Of all rows of all batches, one batch behind the other.
  std::vector<std::int64_t> sample_ids;
  std::vector<std::int32_t> device_rows;  ///< Where on the device each one is.

  /// \param batches, rows  that it will have at most.
  void reserve(std::int64_t batches, std::int64_t rows) {
    batch_rows.reserve(static_cast<std::size_t>(batches));
    sample_ids.reserve(static_cast<std::size_t>(rows));
    device_rows.reserve(static_cast<std::size_t>(rows));
  }
  /// Without rows, of `of_epoch`.
  void clear(std::int64_t of_epoch) {
    epoch = of_epoch;
    batch_rows.clear();
    sample_ids.clear();
    device_rows.clear();
  }
};

/// One thread at a time, but for the const members of what loader() gives, and those below it.
class BatchFeed {
 public:
  BatchFeed() = default;
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;
  virtual ~BatchFeed() = default;

  /// Goes on at the start of `epoch`; after restore() to that epoch, at its place.
  /// \pre every echo buffer was released. \throws Error out_of_resources (no thread), and as Gpu.
  virtual void start(std::int64_t epoch) = 0;
  /// The next start() goes on there. \throws Error as Loader::restore().
  virtual void restore(std::string_view state) = 0;

  /// The next echo buffer of the epoch, or null at its end. Waits until it is prepared; its images
  /// may still be on their way (`uploaded`).
  /// \pre an epoch was started.
  /// \param limit  of the time for which the feed may be waiting for the device meanwhile.
  /// \return nothing if that was longer. \throws what `look` throws; Error what the loader or the
  ///         device threw, every time.
  [[nodiscard]] virtual std::optional<EchoBuffer*> next(base::Seconds limit,
                                                        base::WaitHook& look) = 0;
  /// It may be used again once `consumed` is done.
  virtual void release(EchoBuffer* echo_buffer) = 0;

  /// For its thread-safe members.
  [[nodiscard]] virtual const Loader& loader() const noexcept = 0;
  /// Of whatever read the images: in all, or for an epoch.
  [[nodiscard]] virtual LoaderStats loader_stats(std::optional<std::int64_t> epoch) const = 0;
  [[nodiscard]] virtual std::vector<SkippedRows> skipped() const = 0;
  /// What was copied to the device.
  struct Uploads {
    std::int64_t bytes = 0;
    double seconds = 0;  ///< By the device's clock; of copies that were looked at since.

    Uploads& operator+=(const Uploads& more) noexcept {
      bytes += more.bytes;
      seconds += more.seconds;
      return *this;
    }
  };
  [[nodiscard]] virtual Uploads uploads(std::optional<std::int64_t> epoch) const = 0;
  [[nodiscard]] virtual std::int64_t device_bytes() const noexcept = 0;
};

}  // namespace chunkio::device
