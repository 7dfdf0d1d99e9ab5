/// What a DeviceLoader takes of the memory of a device, and what to say where there is not as much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// For footprints of 2^63 bytes or more, which no device has.
inline constexpr std::int64_t kBeyondAnyDevice = std::numeric_limits<std::int64_t>::max();

/// Known before anything is allocated. Bytes.
struct MemoryNeeds {
  std::int64_t output_bytes = 0;  ///< Output batches.
  std::int64_t input_bytes = 0;   ///< Echo buffers, or the whole of a resident dataset.
  std::int64_t free_bytes = 0;    ///< Of the device.
  // What the options say, for the message.
  std::int64_t batch_size = 0;
  std::int64_t max_held = 0;
  std::int64_t echo_buffer_batches = 0;
  bool has_fields = false;
  bool resident = false;
  bool required = false;  ///< The dataset is to be resident in any case.

  [[nodiscard]] std::int64_t total_bytes() const noexcept {
    return base::checked_add(output_bytes, input_bytes).value_or(kBeyondAnyDevice);
  }
  [[nodiscard]] bool fit() const noexcept { return total_bytes() <= free_bytes; }

  /// How much is needed, and for what; how much is free; the hint.
  [[nodiscard]] std::string explanation() const {
    return std::to_string(total_bytes()) + " bytes of device memory are needed and " +
           std::to_string(free_bytes) + " were free: " + std::to_string(output_bytes) +
           " for output batches (max_held = " + std::to_string(max_held) +
           ", batch_size = " + std::to_string(batch_size) + ") and " + std::to_string(input_bytes) +
           (resident
                ? " for the resident dataset; lower max_held or batch_size" + without_fields() +
                      ", or set resident to " + std::string(required ? "automatic or off" : "off") +
                      ", or end what else uses the device (nvidia-smi)"
                : " for two echo buffers (echo_buffer_batches = " +
                      std::to_string(echo_buffer_batches) +
                      "); lower echo_buffer_batches, max_held or batch_size" + without_fields() +
                      ", or end what else uses the device (nvidia-smi)");
  }

  /// \throws Error out_of_resources.
  void require_room() const {
    if (!fit()) throw Error(ErrorCode::out_of_resources, explanation());
  }

 private:
  [[nodiscard]] std::string without_fields() const {
    return has_fields ? ", leave out fields" : "";
  }
};

/// Memory that is refused though it seemed to be there (other programs, scattered room) has the
/// same hint. \throws Error as Gpu::allocate().
[[nodiscard]] inline DeviceBuffer allocate(const std::shared_ptr<Gpu>& gpu, std::size_t bytes,
                                           const MemoryNeeds& needs) {
  try {
    return DeviceBuffer(gpu, bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_resources) throw;
    throw Error(error.code(), std::string(error.what()) + "; " + needs.explanation());
  }
}

}  // namespace chunkio::device
