/// Where a DeviceLoader stands, as text: the state of its loader, and the place within an echo
/// buffer.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "read/state_members.hpp"

namespace chunkio::device {

struct DeviceState {
  std::string loader = {};  ///< Loader::state() at the first batch of the echo buffer.
  std::int64_t echo_buffer_batches = 1;
  std::int64_t echo = 1;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// Output batches of the echo buffer handed out.
  std::int64_t step = 0;
};

inline constexpr const char* kDeviceStateVersion = "chunkio_device_state";
/// What version 0.1 called `echo_buffer_batches`; its states go on.
inline constexpr const char* kEchoBufferBatches = "big_batch";

/// One line of JSON.
[[nodiscard]] inline std::string to_json(const DeviceState& state) {
  return nlohmann::json{{kDeviceStateVersion, 1},
                        {"loader", nlohmann::json::parse(state.loader)},
                        {kEchoBufferBatches, state.echo_buffer_batches},
                        {"echo", state.echo},
                        {"rank", state.rank},
                        {"world_size", state.world_size},
                        {"step", state.step}}
      .dump();
}

/// \throws Error invalid_argument: not what to_json() writes.
[[nodiscard]] inline DeviceState parse_device_state(std::string_view text) {
  constexpr read::StateKind kKind{
      .what = "a state of a DeviceLoader", .from = "a DeviceLoader", .max_bytes = 8192};
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  read::StateMembers members(text, kKind);
  if (members.number(kDeviceStateVersion, 1, kMax) != 1)
    throw members.refusal("its version is not known");
  DeviceState state{.loader = members.object("loader"),
                    .echo_buffer_batches = members.number(kEchoBufferBatches, 1, kMax),
                    .echo = members.number("echo", 1, kMax),
                    .rank = members.number("rank", 0, kMax),
                    .world_size = members.number("world_size", 1, kMax),
                    .step = members.number("step", 0, kMax)};
  members.require_none_left();
  return state;
}

}  // namespace chunkio::device
