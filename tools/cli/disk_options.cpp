#include "cli/disk_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/options.hpp"
#include "cli/parse_number.hpp"
#include "cli/text_layout.hpp"

namespace cli {
namespace {

using chunkio::DiskLimit;
using chunkio::DiskProfile;

/// At most three significant digits: "171", "12.4", "0.053".
std::string short_number(double value) {
  std::array<char, 32> text{};
  if (value >= 100) {
    std::snprintf(text.data(), text.size(), "%.0f", value);
  } else {
    std::snprintf(text.data(), text.size(), "%.3g", value);
  }
  return text.data();
}

std::string_view profile_name(const DiskLimit& limit) {
  const auto profiles = chunkio::disk_profiles();
  const auto found =
      std::find_if(profiles.begin(), profiles.end(),
                   [&](const DiskProfile& profile) { return profile.limit == limit; });
  return found == profiles.end() ? "custom" : found->name;
}

}  // namespace

std::optional<DiskLimit> DiskOptions::limit() const {
  if (!profile && !bytes_per_second && !request_seconds && !queue_depth) return std::nullopt;
  DiskLimit limit = profile.value_or(DiskLimit{});
  if (bytes_per_second) limit.bytes_per_second = *bytes_per_second;
  if (request_seconds) limit.request_seconds = *request_seconds;
  if (queue_depth) limit.queue_depth = *queue_depth;
  return limit;
}

double parse_bandwidth(const std::string& text) {
  std::string size = text;
  if (size.ends_with("/s")) size.resize(size.size() - 2);
  try {
    return static_cast<double>(parse_byte_size(size));
  } catch (const chunkio::Error&) {
    throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                         "'" + escape(text) +
                             "' is not a bandwidth; write bytes a second, such as 200MB/s, "
                             "1.5GiB/s or 500000000, or 0 for no limit");
  }
}

double parse_duration(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  static constexpr std::array<std::pair<std::string_view, double>, 3> kUnits{
      {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}}};
  const auto found = std::find_if(kUnits.begin(), kUnits.end(),
                                  [&](const auto& known) { return known.first == unit; });
  const bool nothing = unit.empty() && value == 0;
  // Written so that NaN is refused, too.
  if (status == std::errc() && value >= 0 && (found != kUnits.end() || nothing)) {
    return nothing ? 0 : value * found->second;
  }
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "'" + escape(text) +
                           "' is not a time; write a number with s, ms or us, such as 8ms, "
                           "or 0 for none");
}

void add_disk_limit(CLI::App& app, DiskOptions& options) {
  const std::string names = joined(chunkio::disk_profiles(), ", ", &DiskProfile::name);
  const auto add = [&](const std::string& name, const char* type, const std::string& description,
                       auto set) {
    const auto take = [&options, name, set](const std::string& text) { set(options, name, text); };
    app.add_option_function<std::string>(name, take, description)->type_name(type);
  };
  using Name = const std::string&;
  using Text = const std::string&;
  add("--simulate-disk", "NAME", "Read as if from a slower disk, even what is cached: " + names,
      [](DiskOptions& disk, Name name, Text text) {
        disk.profile = of_option(name, [&] { return chunkio::disk_profile(escape(text)); });
      });
  add("--limit-bandwidth", "RATE", "Bandwidth of the simulated disk, such as 200MB/s; 0: no limit",
      [](DiskOptions& disk, Name name, Text text) {
        disk.bytes_per_second = of_option(name, [&] { return parse_bandwidth(text); });
        chunkio::require_valid({.bytes_per_second = *disk.bytes_per_second});
      });
  add("--limit-latency", "TIME", "Latency of each of its requests, such as 8ms",
      [](DiskOptions& disk, Name name, Text text) {
        disk.request_seconds = of_option(name, [&] { return parse_duration(text); });
        chunkio::require_valid({.request_seconds = *disk.request_seconds});
      });
  add("--limit-queue", "N", "Requests that it serves at once; 0: no limit",
      [](DiskOptions& disk, Name name, Text text) {
        disk.queue_depth = parse_number<std::int64_t>(text);
        if (!disk.queue_depth) refuse(name, "a whole number", text);
        chunkio::require_valid({.queue_depth = *disk.queue_depth});
      });
}

void add_throttle_device(CLI::App& app, std::int64_t& target, const std::string& description) {
  app.add_option_function<std::string>(
         "--throttle-device",
         [&target](const std::string& text) {
           target = static_cast<std::int64_t>(parse_bandwidth(text));
           if (target < 1) refuse("--throttle-device", "a rate such as 100MB/s", text);
         },
         description)
      ->type_name("RATE");
}

std::string disk_text(const DiskLimit& limit) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (limit.bytes_per_second > 0) add(short_number(limit.bytes_per_second / 1e6) + " MB/s");
  if (limit.request_seconds > 0) add(short_number(limit.request_seconds * 1e3) + " ms a request");
  if (limit.queue_depth > 0) add(std::to_string(limit.queue_depth) + " at a time");
  const std::string_view name = profile_name(limit);
  return "a disk of " + (text.empty() ? "any speed" : text) +
         (name == "custom" ? "" : " (" + std::string(name) + ")");
}

nlohmann::ordered_json disk_json(const std::optional<DiskLimit>& limit) {
  if (!limit) return nullptr;
  return {{"profile", profile_name(*limit)},
          {"bytes_per_second", limit->bytes_per_second},
          {"request_seconds", limit->request_seconds},
          {"queue_depth", limit->queue_depth}};
}

}  // namespace cli
