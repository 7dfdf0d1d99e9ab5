/// The options of a simulated slower disk, and its text and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chunkio/disk_limit.hpp>

namespace cli {

/// What the command line said: a profile, single figures, or figures that replace those of the
/// profile. 0 stands for no limit.
struct DiskOptions {
  std::optional<chunkio::DiskLimit> profile = {};
  std::optional<double> bytes_per_second = {};
  std::optional<double> request_seconds = {};
  std::optional<std::int64_t> queue_depth = {};

  /// Absent if nothing was said.
  [[nodiscard]] std::optional<chunkio::DiskLimit> limit() const;
};

/// --simulate-disk, --limit-bandwidth, --limit-latency and --limit-queue. They check themselves as
/// options.hpp says.
void add_disk_limit(CLI::App& app, DiskOptions& options);

/// --throttle-device RATE, in bytes a second, at least 1.
void add_throttle_device(CLI::App& app, std::int64_t& target, const std::string& description);

/// "200MB/s", "1.5GiB/s": a size, with or without /s. \returns bytes, >= 1; 0 for "0".
/// \throws chunkio::Error invalid_argument.
[[nodiscard]] double parse_bandwidth(const std::string& text);
/// "8ms", "250us", "0.01s". \returns seconds. \throws chunkio::Error invalid_argument.
[[nodiscard]] double parse_duration(const std::string& text);

/// "a disk of 156 MB/s, 12.7 ms a request, 1 at a time (hdd)".
[[nodiscard]] std::string disk_text(const chunkio::DiskLimit& limit);
/// {"profile": "hdd" or "custom", "bytes_per_second", "request_seconds", "queue_depth"}, or null.
[[nodiscard]] nlohmann::ordered_json disk_json(const std::optional<chunkio::DiskLimit>& limit);

}  // namespace cli
