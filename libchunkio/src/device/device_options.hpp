/// Options of a DeviceLoader that suit its Loader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>

#include "base/checked_math.hpp"
#include "base/require.hpp"
#include "base/wait_hook.hpp"

namespace chunkio::device {

/// Batches of an echo buffer. An epoch has no more; what is not there needs no room.
[[nodiscard]] inline std::int64_t echo_buffer_batches_of(const Loader& loader,
                                                         const cuda::DeviceOptions& options) {
  return std::min(loader.num_steps(), options.echo_buffer_batches);
}

/// \throws Error invalid_argument, which names the option.
inline void check_options(const Loader& loader, const cuda::DeviceOptions& options) {
  using base::require;
  constexpr std::int64_t kMaxHeld = 1024;  // Far beyond use; it keeps sums in range.
  const auto at_least_one = [](std::int64_t value, const std::string& name) {
    require(value >= 1, name + " must be >= 1, got " + std::to_string(value));
  };
  at_least_one(options.echo_buffer_batches, "echo_buffer_batches");
  at_least_one(options.echo, "echo");
  require(options.max_held >= 1 && options.max_held <= kMaxHeld,
          "max_held must be between 1 and " + std::to_string(kMaxHeld) + ", got " +
              std::to_string(options.max_held));
  require(
      options.label_dtype == DType::int64 || options.label_dtype == DType::float32,
      "label_dtype must be int64 or float32, got " + std::string(to_string(options.label_dtype)));
  const auto timeout = [](double seconds, const std::string& name) {
    require(seconds >= 0 && seconds <= base::kMaxTimeoutSeconds,
            name + " must be between 0 and 1e6, got " + std::to_string(seconds));
  };
  timeout(options.release_timeout_seconds, "release_timeout_seconds");
  timeout(options.device_timeout_seconds, "device_timeout_seconds");
  const auto rows =
      base::checked_multiply(echo_buffer_batches_of(loader, options), loader.options().batch_size);
  require(rows && *rows <= std::numeric_limits<std::int32_t>::max(),
          "echo_buffer_batches * batch_size is 2^31 samples or more; lower echo_buffer_batches");
  require(options.resident_share >= 0 && options.resident_share <= 1,
          "resident_share must be between 0 and 1, got " + std::to_string(options.resident_share));
  require(options.echo <= std::numeric_limits<std::int32_t>::max() &&
              base::checked_multiply(loader.num_steps(), options.echo).has_value(),
          "an epoch has 2^63 batches or more; lower echo");
}

}  // namespace chunkio::device
