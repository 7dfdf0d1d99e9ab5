/// Where a DeviceLoader stands, as text: the state of its loader, and the place within a big batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace chunkio::device {

struct DeviceState {
  std::string loader = {};  ///< Loader::state() at the first batch of the big batch.
  std::int64_t big_batch = 1;
  std::int64_t echo = 1;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// Output batches of the big batch handed out.
  std::int64_t step = 0;
};

/// One line of JSON.
[[nodiscard]] std::string to_json(const DeviceState& state);
/// \throws Error invalid_argument: not what to_json() writes.
[[nodiscard]] DeviceState parse_device_state(std::string_view text);

}  // namespace chunkio::device
