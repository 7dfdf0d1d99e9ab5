#include "device/device_state.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/require.hpp"
#include "read/state_members.hpp"

namespace chunkio::device {
namespace {

using base::require;

constexpr const char* kDeviceStateVersion = "chunkio_device_state";
/// What version 0.1 called `echo_buffer_batches`; its states go on.
constexpr const char* kEchoBufferBatches = "big_batch";

}  // namespace

std::string to_json(const DeviceState& state) {
  return nlohmann::json{{kDeviceStateVersion, 1},
                        {"loader", nlohmann::json::parse(state.loader)},
                        {kEchoBufferBatches, state.echo_buffer_batches},
                        {"echo", state.echo},
                        {"rank", state.rank},
                        {"world_size", state.world_size},
                        {"step", state.step}}
      .dump();
}

DeviceState parse_device_state(std::string_view text) {
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

EchoPlace EchoUse::place_of(const LoaderPosition& position) const {
  // Without echo a batch is a batch of the loader, whatever it was uploaded with.
  if (echo == 1) return {.buffer = position};
  const std::int64_t batches = std::min(echo_buffer_batches, num_batches);
  EchoPlace place{.buffer = position};
  place.buffer.step = position.step / (batches * echo) * batches;
  place.step = position.step - place.buffer.step * echo;
  // Behind the last echo buffer, which may be a shorter one.
  if (place.buffer.step + place.step / echo == num_batches) {
    place.buffer.step = num_batches;
    place.step = 0;
  }
  return place;
}

void check_state(const DeviceState& state, const LoaderPosition& position, const EchoUse& use,
                 const Ranks& ranks) {
  const auto same = [](const std::string& name, std::int64_t there, std::int64_t here) {
    require(there == here, "the state of the device loader was made with " + name + " " +
                               std::to_string(there) + ", this one has " + std::to_string(here));
  };
  same("echo", state.echo, use.echo);
  if (use.echo > 1) {
    same("echo_buffer_batches", state.echo_buffer_batches, use.echo_buffer_batches);
  }
  if (state.step > 0) {
    same("rank", state.rank, ranks.rank);
    same("world_size", state.world_size, ranks.world_size);
  }
  const std::int64_t left = std::min(use.echo_buffer_batches, use.num_batches - position.step);
  require(use.echo == 1 ? state.step == 0
                        : use.begins_buffer(position.step) &&
                              (state.step == 0 || state.step < left * use.echo),
          "the state of the device loader is damaged: there is no such place in an echo buffer");
}

}  // namespace chunkio::device
