#include "h5pack/report/tune_report.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/json_text.hpp"
#include "cli/progress_text.hpp"
#include "cli/snippets.hpp"
#include "cli/text_layout.hpp"

namespace h5pack {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTextColumns = 84;

std::string rate_text(double images_per_second) {
  if (!std::isfinite(images_per_second)) return "any number of images/s";
  return cli::format_count(std::llround(images_per_second)) + " images/s";
}

std::string milliseconds(double seconds) {
  return cli::decimals(1e3 * seconds, seconds < 1e-3 ? 3 : 1) + " ms";
}

std::string tuned_disk_text(const TuneReport& report) {
  const chunkio::DiskLimit& disk = report.rates.disk;
  std::string text = report.disk_origin == "measured" ? "measured" : report.disk_name;
  if (report.disk_origin == "assumed") text += ", assumed";
  text += ": " + cli::decimals(disk.bytes_per_second / 1e6, 0) + " MB/s, " +
          milliseconds(disk.request_seconds) + " a request, " + std::to_string(disk.queue_depth) +
          " at a time";
  if (!report.disk_method.empty()) text += " (" + report.disk_method + ")";
  if (report.disk_origin == "assumed") {
    text += "; --measure times the one there is, --disk names another";
  }
  return text;
}

std::string settings_text(const TuneReport& report) {
  const chunkio::Tuning& advice = report.advice();
  std::string text = report.pack || report.source.encoded_bytes == 0
                         ? "chunks of " + cli::counted(advice.chunk_samples, "image") + " (" +
                               cli::format_bytes(advice.chunk_bytes) + "), "
                         : "";
  text += "windows of " + cli::format_bytes(advice.window_bytes) + ", " +
          std::to_string(advice.num_threads) +
          (advice.num_threads == 1 ? " thread, " : " threads, ") +
          std::to_string(advice.prefetch_depth) + " batches ahead, memory budget " +
          cli::format_bytes(advice.memory_budget);
  if (advice.resident == chunkio::Resident::host) text += ", all images kept in memory";
  return text;
}

/// "4,810 images/s, limited by disk; stall 77.5 %".
std::string promise_text(const chunkio::Throughput& promise, double step_seconds) {
  std::string text = rate_text(promise.images_per_second);
  if (promise.bottleneck == chunkio::Bottleneck::consumer) {
    text += ", as fast as the step; no stall";
    return text + " (the loader could give " + rate_text(promise.loader_images_per_second) + ")";
  }
  text += ", limited by " + std::string(to_string(promise.bottleneck));
  if (step_seconds > 0) text += "; stall " + cli::percent(promise.stall, 1);
  return text;
}

std::string epochs_text(const chunkio::Tuning& tuning, double step_seconds) {
  return "first epoch: " + promise_text(tuning.first_epoch, step_seconds) +
         "\nlater ones:  " + promise_text(tuning.later_epochs, step_seconds);
}

std::string echo_text(const TuneReport& report) {
  const chunkio::Throughput& later = report.advice().later_epochs;
  if (later.echo == 1) return "not needed";
  if (later.bottleneck != chunkio::Bottleneck::disk) {
    return "not proposed: " + std::string(to_string(later.bottleneck)) + " limits, not storage";
  }
  // As in the report of a run.
  constexpr std::int64_t kMostEcho = 8;
  const std::string uses = std::to_string(later.echo);
  return later.echo > kMostEcho
             ? "not proposed: for a step never to wait, each image would have to be used " + uses +
                   " times"
             : uses +
                   ": each image would have to be used so often for a step never to wait "
                   "(DeviceOptions::echo)";
}

std::string h5py_text(const TunedSource& source) {
  std::string text;
  if (source.random_h5py) {
    text += "random order and the default cache: " +
            cli::decimals(source.random_h5py->read_amplification, 2) +
            " bytes read for each one wanted, hit rate " +
            cli::percent(source.random_h5py->hit_rate, 1);
  }
  if (source.chunk_order_h5py) {
    text += "\nchunk order and the cache below: " +
            cli::decimals(source.chunk_order_h5py->read_amplification, 2) + " bytes, hit rate " +
            cli::percent(source.chunk_order_h5py->hit_rate, 1);
  }
  return text;
}

/// What is infinite has no number in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json throughput_json(const chunkio::Throughput& throughput) {
  return {{"images_per_second", number(throughput.images_per_second)},
          {"loader_images_per_second", number(throughput.loader_images_per_second)},
          {"disk_images_per_second", number(throughput.disk_images_per_second)},
          {"decode_images_per_second", number(throughput.decode_images_per_second)},
          {"copy_images_per_second", number(throughput.copy_images_per_second)},
          {"stall", throughput.stall},
          {"bottleneck", to_string(throughput.bottleneck)},
          {"echo", throughput.echo}};
}

Json tuning_json(const chunkio::Tuning& tuning) {
  return {{"chunk_samples", tuning.chunk_samples},
          {"chunk_bytes", tuning.chunk_bytes},
          {"window_bytes", tuning.window_bytes},
          {"num_threads", tuning.num_threads},
          {"prefetch_depth", tuning.prefetch_depth},
          {"memory_budget", tuning.memory_budget},
          {"resident", to_string(tuning.resident)},
          {"cache",
           {{"rdcc_nslots", tuning.cache.rdcc_nslots},
            {"rdcc_nbytes", tuning.cache.rdcc_nbytes},
            {"rdcc_w0", tuning.cache.rdcc_w0}}},
          {"disk_share", tuning.disk_share},
          {"first_epoch", throughput_json(tuning.first_epoch)},
          {"later_epochs", throughput_json(tuning.later_epochs)}};
}

Json hdf5_json(const std::optional<chunkio::Hdf5Reads>& reads) {
  if (!reads) return nullptr;
  return {{"hit_rate", reads->hit_rate}, {"read_amplification", reads->read_amplification}};
}

}  // namespace

std::string tune_text(const TuneReport& report, bool colour) {
  const TunedSource& source = report.source;
  const auto add = [&](const std::string& label, const std::string& text) {
    return cli::labelled(label, cli::wrap(text, kTextColumns), colour);
  };
  const std::int64_t image_bytes = source.num_samples * source.sample_bytes();
  std::string out;
  out += add("source", cli::escape(source.path) + " (" + source.kind +
                           (source.split.empty() ? "" : ", " + cli::escape(source.split)) +
                           "): " + cli::format_count(source.num_samples) + " images of " +
                           std::to_string(source.height) + "x" + std::to_string(source.width) +
                           "x" + std::to_string(source.channels) + ", " +
                           cli::format_bytes(image_bytes) + " of pixels");
  out += add("disk", tuned_disk_text(report));
  out += add("memory", cli::format_bytes(report.memory_bytes) + " for the loader, " +
                           cli::format_bytes(report.cache_bytes) + " for the page cache");
  if (report.as_stored) {
    out += cli::labelled("as it is", epochs_text(*report.as_stored, report.step_seconds), colour);
  }
  if (source.random_h5py) out += cli::labelled("h5py", h5py_text(source), colour);
  out += add("advice", (!report.as_stored ? ""
                        : report.pack     ? "pack it again: "
                                          : "keep it: ") +
                           settings_text(report));
  out += cli::labelled("promise", epochs_text(report.advice(), report.step_seconds), colour);
  if (report.step_seconds > 0) out += add("echo", echo_text(report));
  // To paste, so never broken.
  if (!report.pack_line.empty()) out += cli::labelled("h5pack", report.pack_line, colour);
  out += cli::labelled("Python", report.python_line, colour);
  out += cli::labelled("C++", report.cpp_line, colour);
  if (!report.h5py_line.empty()) {
    out +=
        cli::labelled("h5py", report.h5py_line + "\n" + std::string(cli::kH5pyCacheNote), colour);
  }
  for (const std::string& note : report.notes) out += add("note", note);
  return out;
}

std::string tune_json(const TuneReport& report) {
  const TunedSource& source = report.source;
  const chunkio::MachineRates& rates = report.rates;
  Json json;
  json["source"] = {
      {"path", source.path},         {"kind", source.kind},
      {"split", source.split},       {"num_samples", source.num_samples},
      {"height", source.height},     {"width", source.width},
      {"channels", source.channels}, {"picture_bytes", source.num_samples * source.sample_bytes()}};
  json["disk"] = {{"origin", report.disk_origin},
                  {"profile", report.disk_name.empty() ? Json(nullptr) : Json(report.disk_name)},
                  {"bytes_per_second", rates.disk.bytes_per_second},
                  {"request_seconds", rates.disk.request_seconds},
                  {"queue_depth", rates.disk.queue_depth}};
  json["machine"] = {{"num_cpus", rates.num_cpus},
                     {"copy_bytes_per_second", rates.copy_bytes_per_second},
                     {"memory_bytes_per_second", rates.memory_bytes_per_second},
                     {"decode_bytes_per_second", rates.decode_bytes_per_second},
                     {"memory_bytes", report.memory_bytes},
                     {"cache_bytes", report.cache_bytes}};
  json["batch_size"] = report.batch_size;
  json["step_ms"] = 1e3 * report.step_seconds;
  json["pack"] = report.pack;
  json["advice"] = tuning_json(report.advice());
  json["packed"] = tuning_json(report.packed);
  json["as_stored"] = report.as_stored ? tuning_json(*report.as_stored) : Json(nullptr);
  json["h5py"] = {{"random_order_default_cache", hdf5_json(source.random_h5py)},
                  {"chunk_order_recommended_cache", hdf5_json(source.chunk_order_h5py)}};
  json["commands"] = {{"h5pack", report.pack_line.empty() ? Json(nullptr) : Json(report.pack_line)},
                      {"cpp", report.cpp_line},
                      {"python", report.python_line},
                      {"h5py", report.h5py_line.empty() ? Json(nullptr) : Json(report.h5py_line)}};
  json["notes"] = report.notes;
  return cli::json_text(json) + "\n";
}

}  // namespace h5pack
