/// What the device layer uses of a Loader beside its public members.
///
/// One thread at a time, as the Loader itself, but for epoch_order_of() and place_of().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "read/ring.hpp"

namespace chunkio::read {

[[nodiscard]] std::shared_ptr<Ring> ring_of(const Loader& loader);
/// What the loader delivers in an epoch.
[[nodiscard]] EpochOrder epoch_order_of(const Loader& loader, std::int64_t epoch);

/// Where a state is.
struct Place {
  LoaderPosition position = {};
  bool ended = false;  ///< next() has said that the epoch is over, on the rank that has most.
};
/// Where Loader::restore() or resume() went, if no batch was asked for since.
[[nodiscard]] std::optional<Place> restored_place(const Loader& loader);
/// Goes there, whatever was restored before. \throws Error as Loader::start_epoch().
void start_at(Loader& loader, const LoaderPosition& position);
/// Where Loader::restore() would go, without going there. \throws Error as that.
[[nodiscard]] Place place_of(const Loader& loader, std::string_view state);

}  // namespace chunkio::read
