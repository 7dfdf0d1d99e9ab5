/// Rows of a CSR matrix on their way to the device, as the kernel of dense rows takes them.
///
/// The batches of a loader lie in memory that comes and goes with them, and their rows may have
/// their columns in any order. So they are copied to page-locked memory of our own, put in order
/// there, and copied from there: a few bytes for each that the dense rows have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "device/gpu.hpp"
#include "device/memory_needs.hpp"
#include "device/pinned_ring.hpp"

namespace chunkio::device {

class SparseStage {
 public:
  enum class Rows : std::uint8_t {
    of_echo_buffer,  ///< Where they turn out to be longer than expected, it grows.
    of_dataset,      ///< No more than it is made for; host memory is that of one batch.
  };

  /// \param entries  that it is made for. \param policy  of host memory.
  /// \throws Error as allocate() and page_locked().
  SparseStage(std::shared_ptr<Gpu> gpu, const DatasetInfo& info, Rows rows, std::int64_t entries,
              cuda::PinMemory policy, const MemoryNeeds& needs);

  /// Device memory of so many entries.
  [[nodiscard]] static std::int64_t footprint(const DatasetInfo& info, std::int64_t entries);

  /// Without rows. Waits until what was there is copied: host memory is written again.
  /// \throws Error as Gpu.
  void clear();
  /// Puts a copy of the rows behind the others into `stream`. `rows` may go afterwards. Of a
  /// dataset it waits for the copy before.
  /// \return bytes copied. \throws Error as Gpu and the constructor.
  std::int64_t append(const SparseTensor& rows, StreamHandle stream);

  // On the device.
  [[nodiscard]] const std::byte* columns() const noexcept { return columns_.get(); }
  [[nodiscard]] const std::byte* values() const noexcept { return values_.get(); }
  /// Of each row its first entry; and where the last one ends.
  [[nodiscard]] std::span<const std::int64_t> row_begins() const noexcept { return begins_; }
  [[nodiscard]] std::int64_t device_bytes() const noexcept {
    return capacity_ * static_cast<std::int64_t>(size_of(value_) + size_of(index_));
  }
  [[nodiscard]] bool locked() const noexcept {
    return host_columns_.locked() && host_values_.locked();
  }

 private:
  void make_host_room(std::int64_t entries, StreamHandle stream);
  void make_device_room(std::int64_t entries, StreamHandle stream);
  std::int64_t copy(std::int64_t begin, std::int64_t end, StreamHandle stream);
  /// The entry that host memory begins with.
  [[nodiscard]] std::int64_t host_begin(std::int64_t begin) const noexcept {
    return rows_ == Rows::of_dataset ? begin : 0;
  }

  std::shared_ptr<Gpu> gpu_;
  DType value_;
  DType index_;
  Rows rows_;
  cuda::PinMemory policy_;
  MemoryNeeds needs_;
  std::int64_t capacity_ = 0;       // entries, on the device
  std::int64_t host_capacity_ = 0;  // entries
  DeviceBuffer columns_;
  DeviceBuffer values_;
  CopySource host_columns_;
  CopySource host_values_;
  std::vector<std::int64_t> begins_{0};
  GpuWaitedTimer copied_;  // Its time is not asked for.
};

}  // namespace chunkio::device
