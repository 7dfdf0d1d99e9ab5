#include "chunkbench/run_metadata.hpp"

#include "cli/disk_options.hpp"
#include "harness/machine.hpp"

namespace bench {

nlohmann::ordered_json machine_json(const std::string& folder) {
  const Machine machine = this_machine();
  return {{"cpu", machine.cpu},
          {"cpus", machine.cpus},
          {"last_level_cache_bytes", machine.last_level_cache_bytes},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"data_on", file_system_of(folder)}};
}

std::optional<ShapedDisk> shaped(const std::optional<chunkio::DiskLimit>& limit) {
  if (!limit) return std::nullopt;
  ShapedDisk disk = {.profile = cli::disk_json(limit).at("profile").get<std::string>()};
  if (limit->bytes_per_second > 0) disk.bytes_per_second = limit->bytes_per_second;
  if (limit->request_seconds > 0) disk.request_seconds = limit->request_seconds;
  if (limit->queue_depth > 0) disk.queue_depth = limit->queue_depth;
  return disk;
}

}  // namespace bench
