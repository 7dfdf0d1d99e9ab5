/// Where a DeviceLoader stands, as text: the state of its loader, and the place within an echo
/// buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <chunkio/loader.hpp>

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

/// One line of JSON.
[[nodiscard]] std::string to_json(const DeviceState& state);
/// \throws Error invalid_argument: not what to_json() writes.
[[nodiscard]] DeviceState parse_device_state(std::string_view text);

/// An output batch, by its echo buffer.
struct EchoPlace {
  LoaderPosition buffer = {};  ///< The first batch of the loader in it.
  std::int64_t step = 0;       ///< Output batches of the echo buffer before it.
};

/// How batches of the loader become output batches.
struct EchoUse {
  std::int64_t echo = 1;
  std::int64_t echo_buffer_batches = 1;
  std::int64_t num_batches = 0;  ///< Of the loader, in an epoch.

  /// \param batch  of the loader; num_batches: the end of the epoch.
  [[nodiscard]] bool begins_buffer(std::int64_t batch) const noexcept {
    return batch % echo_buffer_batches == 0 || batch == num_batches;
  }
  /// \param position  of an output batch.
  [[nodiscard]] EchoPlace place_of(const LoaderPosition& position) const;
};

/// \param position  where the loader's state is.
/// \throws Error invalid_argument: a device loader of other options made it, or it is damaged.
void check_state(const DeviceState& state, const LoaderPosition& position, const EchoUse& use,
                 const Ranks& ranks);

}  // namespace chunkio::device
