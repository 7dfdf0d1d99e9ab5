#include "device/device_state.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include "read/state_members.hpp"

namespace chunkio::device {
namespace {

using nlohmann::json;

constexpr const char* kVersionKey = "chunkio_device_state";
constexpr read::StateKind kKind{
    .what = "a state of a DeviceLoader", .from = "a DeviceLoader", .max_bytes = 8192};
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string to_json(const DeviceState& state) {
  return json{{kVersionKey, 1},
              {"loader", json::parse(state.loader)},
              {"big_batch", state.big_batch},
              {"echo", state.echo},
              {"rank", state.rank},
              {"world_size", state.world_size},
              {"step", state.step}}
      .dump();
}

DeviceState parse_device_state(std::string_view text) {
  read::StateMembers members(text, kKind);
  if (members.number(kVersionKey, 1, kMax) != 1) throw members.refusal("its version is not known");
  DeviceState state{.loader = members.object("loader"),
                    .big_batch = members.number("big_batch", 1, kMax),
                    .echo = members.number("echo", 1, kMax),
                    .rank = members.number("rank", 0, kMax),
                    .world_size = members.number("world_size", 1, kMax),
                    .step = members.number("step", 0, kMax)};
  members.require_none_left();
  return state;
}

}  // namespace chunkio::device
