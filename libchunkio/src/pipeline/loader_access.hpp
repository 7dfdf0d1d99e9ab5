/// What the device layer sees of a Loader beside its public members.
#pragma once

#include <memory>

#include <chunkio/loader.hpp>

#include "pipeline/ring.hpp"

namespace chunkio::internal {

struct LoaderAccess {
  [[nodiscard]] static std::shared_ptr<pipeline::Ring> ring(const Loader& loader);
};

}  // namespace chunkio::internal
