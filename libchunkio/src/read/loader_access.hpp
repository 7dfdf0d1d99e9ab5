/// What the device layer sees of a Loader beside its public members.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "read/ring.hpp"

namespace chunkio::internal {

struct LoaderAccess {
  [[nodiscard]] static std::shared_ptr<read::Ring> ring(const Loader& loader);
  /// What the loader delivers in an epoch.
  [[nodiscard]] static EpochOrder order(const Loader& loader, std::int64_t epoch);
  /// Where a state is.
  struct Place {
    LoaderPosition position = {};
    bool ended = false;  ///< next() has said that the epoch is over, on the rank that has most.
  };
  /// Where Loader::restore() or resume() went, if no batch was asked for since. Thread of the
  /// loader.
  [[nodiscard]] static std::optional<Place> restored_place(const Loader& loader);
  /// Goes there, whatever was restored before. \throws Error as Loader::start_epoch().
  static void start(Loader& loader, const LoaderPosition& position);
  /// Where Loader::restore() would go, without going there. \throws Error as that.
  [[nodiscard]] static Place place_of(const Loader& loader, std::string_view state);
};

}  // namespace chunkio::internal
