#include "chunkbench/run_metadata.hpp"

#include <array>
#include <ctime>

#include "cli/disk_options.hpp"
#include "harness/machine.hpp"

namespace bench {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

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
