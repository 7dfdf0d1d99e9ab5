/// What the command line of a packing command said.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "packer.hpp"
#include "sources/csv_source.hpp"
#include "sources/listing.hpp"

namespace h5pack {

/// One for each packing command.
struct PackCommand {
  std::string name = {};   ///< Of the subcommand.
  std::string input = {};  ///< DIR or FILE.
  CsvOptions csv = {};
  std::string output = {};
  std::string resize = {}, center_crop = {}, pad = {};  ///< As written.
  std::string interpolation = {};                       ///< Its name.
  PackOptions options = {};
  std::int64_t threads = 0;
  std::int64_t max_errors = -1;  ///< -1: any number.
  std::string report = {};       ///< Empty: none.
  bool dry_run = false;
  bool shard_from_env = false;
  std::function<Listing(const PackCommand&)> list = {};
};

}  // namespace h5pack
