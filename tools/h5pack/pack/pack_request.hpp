/// The command line of a packing command, parsed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "h5pack/pack/pack_plan.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

/// One for each packing command.
struct PackRequest {
  std::string name = {};  ///< Of the subcommand.
  SourceRequest source = {};
  std::string output = {};
  std::string resize = {}, center_crop = {}, pad = {};  ///< As written.
  PackOptions options = {};
  std::int64_t threads = 0;
  std::int64_t max_errors = -1;  ///< -1: any number.
  std::string report = {};       ///< Empty: none.
  bool dry_run = false;
  bool shard_from_env = false;
  std::function<Listing(const PackRequest&)> list = {};
};

}  // namespace h5pack
