#include "device/device_state.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

namespace chunkio::device {
namespace {

using nlohmann::json;

constexpr const char* kVersionKey = "chunkio_device_state";
constexpr std::size_t kMaxBytes = 8192;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "this is not a state of a DeviceLoader: " + why +
                                               "; pass one that a DeviceLoader returned");
}

std::int64_t number(const json& object, const char* name, std::int64_t lowest) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) {
    refuse("'" + std::string(name) + "' is missing or no whole number");
  }
  const bool fits = found->is_number_unsigned()
                        ? found->get<std::uint64_t>() <=
                              static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                        : found->get<std::int64_t>() >= 0;
  if (!fits || found->get<std::int64_t>() < lowest) {
    refuse("'" + std::string(name) + "' is out of range");
  }
  return found->get<std::int64_t>();
}

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
  if (text.size() > kMaxBytes) refuse("it is too long");
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) refuse("it is not a JSON object");
  if (number(object, kVersionKey, 1) != 1) refuse("its version is not known");
  const auto loader = object.find("loader");
  if (loader == object.end() || !loader->is_object()) refuse("'loader' is missing");
  if (object.size() != 7) refuse("it has other members");
  return {.loader = loader->dump(),
          .big_batch = number(object, "big_batch", 1),
          .echo = number(object, "echo", 1),
          .rank = number(object, "rank", 0),
          .world_size = number(object, "world_size", 1),
          .step = number(object, "step", 0)};
}

}  // namespace chunkio::device
