#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/byte_size.hpp"
#include "cli/disk_options.hpp"
#include "cli/escape.hpp"
#include "cli/json_text.hpp"
#include "cli/option_flags.hpp"
#include "cli/progress_text.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/report/report.hpp"

namespace h5pack {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumns = kColumns - cli::kLabelColumns;
constexpr std::size_t kRateColumns = 12;

std::string rate(double bytes_per_second) {
  return bytes_per_second >= 1e9 ? cli::decimals(bytes_per_second / 1e9, 2) + " GB/s"
                                 : cli::decimals(bytes_per_second / 1e6, 0) + " MB/s";
}

std::string images(double images_per_second) {
  return cli::format_count(std::llround(images_per_second));
}

/// "     123,456  how that was found".
std::string stage_line(const std::optional<double>& images_per_second, const std::string& how) {
  const std::string number =
      cli::right_aligned(images_per_second ? images(*images_per_second) : "-", kRateColumns);
  const std::string indent(kRateColumns + 2, ' ');
  return number + "  " +
         cli::replaced(cli::wrap(how, kTextColumns - indent.size()), "\n", "\n" + indent);
}

std::string disk_alone_text(const DoctorReport& report) {
  const chunkio::StageRates& alone = report.alone;
  if (!alone.no_disk.empty()) return "cannot be measured (" + cli::escape(alone.no_disk) + ")";
  return rate(alone.disk_bytes_per_second) + ", " + cli::format_bytes(alone.request_bytes) +
         " at a time at random places, " + cli::decimals(1000 * alone.request_seconds, 3) +
         " ms for the least" +
         (alone.disk_is_direct ? ", bypassing the page cache"
                               : "; the file system keeps its page cache in between") +
         "; " + cli::percent(alone.cached_share, 0) + " of the file is in memory";
}

std::string a_thread(double bytes_per_second, std::int64_t threads) {
  return rate(bytes_per_second) + " of pixels a thread, " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

std::string bus_text(const DoctorReport& report) {
  if (!report.bus) return cli::escape(report.no_bus);
  return rate(report.bus->bytes_per_second) +
         (report.bus->pinned ? " from page-locked memory" : " from pageable memory");
}

std::string suggestion_text(std::size_t number, const chunkio::Suggestion& suggestion) {
  return cli::wrap(std::to_string(number) + ". " + cli::with_flag(suggestion) +
                       " Predicted: " + cli::percent(suggestion.stall, 1) + " stall, " +
                       images(suggestion.images_per_second) + " images/s.",
                   kTextColumns);
}

Json stage_json(const std::optional<double>& images_per_second, double bytes_per_second) {
  if (!images_per_second) return nullptr;
  return {{"images_per_second", *images_per_second}, {"bytes_per_second", bytes_per_second}};
}

}  // namespace

std::string doctor_text(const DoctorReport& report, bool colour) {
  const chunkio::DatasetInfo& info = report.dataset;
  const chunkio::StageRates& alone = report.alone;
  const chunkio::BottleneckReport& found = report.found;
  const auto paragraph = [&](const std::string& label, const std::string& text) {
    return cli::labelled(label, cli::wrap(text, kTextColumns), colour);
  };
  std::string text =
      paragraph(samples_label(info), cli::escape(info.path) + ": " + samples_text(info));
  text += paragraph("reading",
                    "source " + std::string(to_string(report.source)) + " (" +
                        cli::escape(report.source_reason) + "), batches of " +
                        cli::format_count(report.options.batch_size) +
                        (report.options.io.disk_limit
                             ? ", limited to " + cli::disk_text(*report.options.io.disk_limit)
                             : ""));
  text += "\n" + cli::labelled("alone", cli::right_aligned("images/s", kRateColumns), colour);
  const auto stage = [&](const std::string& label, const std::optional<double>& rate,
                         const std::string& how) {
    text += cli::labelled("  " + label, stage_line(rate, how), false);
  };
  stage("disk", report.disk_images_per_second(), disk_alone_text(report));
  stage("decode", report.decode_images_per_second(),
        alone.decode_bytes_per_second > 0
            ? a_thread(alone.decode_bytes_per_second, alone.busy_threads)
            : "nothing to decode or to check");
  stage("copy", report.copy_images_per_second(),
        a_thread(alone.copy_bytes_per_second, alone.busy_threads));
  stage("bus", report.bus_images_per_second(), bus_text(report));
  stage("consumer", report.consumer_images_per_second(),
        cli::decimals(report.step_ms, 3) + " ms a batch");
  text += cli::labelled("together", cli::right_aligned("images/s", kRateColumns), colour);
  stage("no consumer", report.loader_images_per_second, "the stages of the host");
  stage("all", report.images_per_second,
        cli::percent(found.stall, 1) + " of " + cli::decimals(report.seconds, 1) + " s stall");
  text += "\n" + cli::labelled("bottleneck", std::string(to_string(found.bottleneck)), colour);
  for (std::size_t i = 0; i < found.evidence.size(); ++i) {
    text += paragraph(i == 0 ? "evidence" : "", found.evidence[i]);
  }
  for (std::size_t i = 0; i < found.suggestions.size(); ++i) {
    text += cli::labelled(i == 0 ? "suggestions" : "", suggestion_text(i + 1, found.suggestions[i]),
                          colour);
  }
  return text;
}

std::string doctor_json(const DoctorReport& report) {
  const chunkio::StageRates& alone = report.alone;
  const chunkio::BottleneckReport& found = report.found;
  Json json;
  json["path"] = report.dataset.path;
  json["samples"] = report.dataset.num_samples;
  json["sample_bytes"] = report.dataset.sample_bytes();
  json["source"] = to_string(report.source);
  json["source_reason"] = report.source_reason;
  json["batch_size"] = report.options.batch_size;
  json["num_threads"] = alone.num_threads;
  json["disk_limit"] = cli::disk_json(report.options.io.disk_limit);
  json["step_ms"] = report.step_ms;
  json["cached_share"] = alone.cached_share;
  Json& stages = json["alone"];
  stages["disk"] = stage_json(report.disk_images_per_second(), alone.disk_bytes_per_second);
  if (!stages["disk"].is_null()) {
    stages["disk"]["request_bytes"] = alone.request_bytes;
    stages["disk"]["request_seconds"] = alone.request_seconds;
    stages["disk"]["direct"] = alone.disk_is_direct;
  }
  stages["decode"] = stage_json(report.decode_images_per_second(), alone.decode_bytes_per_second);
  stages["copy"] = stage_json(report.copy_images_per_second(), alone.copy_bytes_per_second);
  stages["bus"] =
      stage_json(report.bus_images_per_second(), report.bus ? report.bus->bytes_per_second : 0);
  stages["consumer"] = {{"images_per_second", report.consumer_images_per_second()}};
  json["no_disk"] = alone.no_disk.empty() ? Json(nullptr) : Json(alone.no_disk);
  json["no_bus"] = report.no_bus.empty() ? Json(nullptr) : Json(report.no_bus);
  json["loader_images_per_second"] = report.loader_images_per_second;
  json["images_per_second"] = report.images_per_second;
  json["seconds"] = report.seconds;
  json["stall_fraction"] = found.stall;
  json["bottleneck"] = to_string(found.bottleneck);
  json["evidence"] = found.evidence;
  json["suggestions"] = Json::array();
  for (const chunkio::Suggestion& suggestion : found.suggestions) {
    json["suggestions"].push_back(
        {{"option", suggestion.option.empty() ? Json(nullptr) : Json(suggestion.option)},
         {"text", suggestion.text},
         {"images_per_second", suggestion.images_per_second},
         {"stall_fraction", suggestion.stall}});
  }
  return cli::json_text(json) + "\n";
}

}  // namespace h5pack
