/// When and how results came about: when, on what machine, from what disk.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/disk_limit.hpp>

#include "chunkbench/results.hpp"

namespace bench {

/// Of Results::machine. \param folder  where the files are that are measured.
[[nodiscard]] nlohmann::ordered_json machine_json(const std::string& folder);

/// Of SweepSettings::limit. In a DiskLimit 0 stands for no limit, which is absent in the results.
[[nodiscard]] std::optional<ShapedDisk> shaped(const std::optional<chunkio::DiskLimit>& limit);

}  // namespace bench
